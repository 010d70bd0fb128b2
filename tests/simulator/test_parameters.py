"""The parameter files: every parser of lustre.formats reads the model's own numbers back; the form is the kernel's."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lustre.formats import df, extents_stats, import_, job_stats, max_cached_mb, statahead_stats
from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.jobs.large_files import RandomWriter, StreamingReader, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.parameters import render, write_parameters
from simulator.settings import recorded_test_bed
from tests.simulator.readback import DEBUGFS, PROC, SYSFS

Unpack = Callable[[str], Path]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    jobs = (
        StreamingWriter(),
        SmallFileWriter(rereads_per_second=2, keep=50),
        RandomWriter("we ird:x.0"),
        StreamingReader(path="/proj/in/data", client=1, file_bytes=64 << 20),
    )
    cluster = Cluster(recorded_test_bed(1), jobs)
    cluster.advance(20.25)
    return cluster


@pytest.fixture(scope="module")
def files(cluster: Cluster) -> dict[str, bytes]:
    return render(cluster)


def test_job_stats_know_only_who_touched_the_target(files: dict[str, bytes]) -> None:
    flash = job_stats.parse(files[f"{PROC}/obdfilter/lustre-OST0000/job_stats"])
    hdd = job_stats.parse(files[f"{PROC}/obdfilter/lustre-OST0002/job_stats"])
    assert flash.jobs == ()
    assert {job.job_id for job in hdd.jobs} >= {b"ior_stream.1002", b"mdt_small.1001", b"we ird:x.0"}


def test_sizes_add_up(cluster: Cluster, files: dict[str, bytes]) -> None:
    def sizes(place: str) -> df.Df:
        names = ("kbytestotal", "kbytesfree", "kbytesavail", "filestotal", "filesfree")
        return df.parse(*(files[f"{SYSFS}/{place}/{name}"] for name in names))

    per_ost = [sizes(f"obdfilter/{ost.name}") for ost in cluster.osts]
    for ost, room in zip(cluster.osts, per_ost, strict=True):
        assert room.free_bytes == ost.store.space().free_bytes // 1024 * 1024
        assert room == sizes(f"osc/{ost.name}-osc-{cluster.clients[0].settings.instance}")
    whole = sizes(f"llite/lustre-{cluster.clients[0].settings.instance}")
    assert whole.size_bytes == sum(room.size_bytes or 0 for room in per_ost)


def test_the_small_ones(cluster: Cluster, files: dict[str, bytes]) -> None:
    llite = f"{DEBUGFS}/llite/lustre-{cluster.clients[0].settings.instance}"
    cached = max_cached_mb.parse(files[f"{llite}/max_cached_mb"])
    assert (cached.max_bytes, cached.skipped) == (cluster.clients[0].cache.max_bytes, 0)
    assert not extents_stats.parse(files[f"{llite}/extents_stats"]).enabled
    assert statahead_stats.parse(files[f"{llite}/statahead_stats"]).total == 0


def test_imports(cluster: Cluster, files: dict[str, bytes]) -> None:
    osc = cluster.clients[0].oscs[2]
    read = import_.parse(files[f"{DEBUGFS}/osc/{osc.name}/import"])
    assert (read.state, read.skipped) == (b"FULL", 0)
    waited = osc.stats["req_waittime"]
    assert read.avg_waittime_usec == waited.total // waited.samples


def test_everything_on_a_tape_is_read(cluster: Cluster, files: dict[str, bytes], tape: Unpack) -> None:
    meta = json.loads((tape("noisy-create-1m") / "tape.json").read_text())
    ours = {"A": cluster.clients[0].settings.instance, "B": cluster.clients[1].settings.instance}
    wanted = set()
    with tarfile.open(tape("noisy-create-1m") / "tape.tar.xz") as archive:
        for member in archive:
            if member.name.startswith("001/"):
                break
            if member.isfile() and member.name.startswith("000/") and "lock_count" not in member.name:
                path = member.name.removeprefix("000/")
                for mount, described in meta["mounts"].items():
                    path = path.replace(described["llite"].removeprefix("lustre-"), ours[mount])
                wanted.add(path)
    assert len(wanted) >= 300
    assert wanted - set(files) == set()


def form(line: str) -> str:
    """A line with its numbers taken out and their columns kept."""
    return re.sub(r" *\d+", lambda match: "~" * len(match.group()), line)


@pytest.mark.parametrize(("pattern", "label"), [
    (f"{PROC}/obdfilter/lustre-OST0002/job_stats", r"  (\w+):"),
    (f"{PROC}/mdt/lustre-MDT0000/job_stats", r"  (\w+):"),
    (f"{DEBUGFS}/osd-ldiskfs/lustre-OST0002/brw_stats", r"(\d{1,2}K?):"),
    (f"{DEBUGFS}/osc/lustre-OST0002-osc-INSTANCE/rpc_stats", r"(\d{1,3}):"),
])
def test_columns_stand_where_the_kernel_puts_them(
    cluster: Cluster, files: dict[str, bytes], capture: Unpack, pattern: str, label: str
) -> None:
    root = capture("2.17.57/tree-load-2")
    recorded = next(root.glob(pattern.replace("INSTANCE", "*"))).read_text()
    mine = files[pattern.replace("INSTANCE", cluster.clients[0].settings.instance)].decode()
    columns: dict[str, set[str]] = {}
    for line in recorded.splitlines():
        if match := re.match(label, line):
            columns.setdefault(match[1], set()).add(form(re.sub(r", hist: .*", "", line)))
    compared = 0
    for line in mine.splitlines():
        match = re.match(label, line)
        if match and match[1] in columns:
            compared += 1
            assert form(re.sub(r", hist: .*", "", line)) in columns[match[1]], line
    assert compared > 5


def test_titles_and_headers_are_the_kernels(cluster: Cluster, files: dict[str, bytes], capture: Unpack) -> None:
    root = capture("2.17.57/tree-load-2")
    instance = cluster.clients[0].settings.instance
    for path in ("osc/lustre-OST0002-osc-INSTANCE/rpc_stats", "mdc/lustre-MDT0000-mdc-INSTANCE/rpc_stats",
                 "osd-ldiskfs/lustre-OST0002/brw_stats"):  # fmt: skip
        recorded = next((root / DEBUGFS).glob(path.replace("INSTANCE", "*"))).read_text()
        mine = files[f"{DEBUGFS}/{path.replace('INSTANCE', instance)}"].decode()

        def titles(text: str) -> list[str]:
            return [line for line in text.splitlines() if not re.search(r"\d", line)]

        assert titles(mine) == titles(recorded), path


def test_files_are_replaced_whole_and_found_by_the_tree(cluster: Cluster, tmp_path: Path) -> None:
    first = write_parameters(cluster, tmp_path)
    assert first > 300
    assert write_parameters(cluster, tmp_path) == 0
    cluster.advance(1)
    assert 0 < write_parameters(cluster, tmp_path) < first
    assert not list(tmp_path.rglob("*.new"))
    tree = Tree(Roots.of(tmp_path / "proc", tmp_path / "sys"))
    assert len(tree.devices("osc")) == 12
    path = "obdfilter/lustre-OST0002/job_stats"
    assert tree.read(path) == render(cluster)[f"{PROC}/{path}"]
