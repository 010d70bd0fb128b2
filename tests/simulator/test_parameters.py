"""The parameter files: every parser of lustre.formats reads the model's own numbers back; the form is that of the
kernel, in each release."""

import json
import re
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.formats import (
    changelog_users,
    df,
    extents_stats,
    import_,
    job_stats,
    max_cached_mb,
    read_ahead_stats,
    rpc_stats,
    statahead_stats,
    stats,
)
from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.jobs.large_files import RandomWriter, StreamingReader, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.parameters import render, write_parameters
from simulator.releases import RELEASES
from simulator.settings import recorded_test_bed
from tests.exporter.written import WRITTEN
from tests.simulator.test_invariants import DEBUGFS, PROC, SYSFS

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
            if member.isfile() and member.name.startswith("000/") and not member.name.endswith(("lock_count", "state")):
                path = member.name.removeprefix("000/")
                for mount, described in meta["mounts"].items():
                    path = path.replace(described["llite"].removeprefix("lustre-"), ours[mount])
                wanted.add(path)
    assert len(wanted) >= 280
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
        cluster: Cluster, files: dict[str, bytes], capture: Unpack, pattern: str, label: str) -> None:
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


CLIENT = "ff110001298dd800"


@pytest.fixture(scope="module")
def trees() -> dict[str, dict[str, bytes]]:
    found = {}
    for name, version in RELEASES.items():
        jobs = (StreamingWriter(), SmallFileWriter(), StreamingReader(path="/proj/in/a", client=1))
        cluster = Cluster(replace(recorded_test_bed(), version=version), jobs)
        cluster.advance(6)
        found[name] = render(cluster)
    return found


def one(tree: dict[str, bytes], ending: str) -> tuple[str, bytes]:
    (path,) = [path for path in tree if path.endswith(ending)]
    return path, tree[path]


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_has_the_same_numbers(trees: dict[str, dict[str, bytes]], release: str) -> None:
    now, then = trees["2.17"], trees[release]
    for ending in (f"osc/lustre-OST0002-osc-{CLIENT}/stats", "obdfilter/lustre-OST0003/stats"):
        ours, theirs = stats.parse(one(now, ending)[1]), stats.parse(one(then, ending)[1])
        assert theirs.counter(b"write_bytes") == ours.counter(b"write_bytes")
        assert not theirs.skipped
    jobs = [job_stats.parse(one(tree, "obdfilter/lustre-OST0002/job_stats")[1]) for tree in (now, then)]
    assert [job.job_id for job in jobs[0].jobs] == [job.job_id for job in jobs[1].jobs]
    sums = [whole.jobs[0].sums[whole.jobs[0].names.index(b"write_bytes")] for whole in jobs]
    assert sums[0] == sums[1]
    tables = [rpc_stats.parse(one(tree, f"osc/lustre-OST0002-osc-{CLIENT}/rpc_stats")[1]) for tree in (now, then)]
    assert tables[0].pages_per_rpc == tables[1].pages_per_rpc
    assert (tables[1].latency_usec is None) is (release != "2.17")
    ahead = [read_ahead_stats.parse(one(tree, "llite/lustre-ff1100012ac8e000/read_ahead_stats")[1])
             for tree in (now, then)]  # fmt: skip
    assert set(ahead[1].names) <= set(ahead[0].names)
    assert b"misses" in ahead[1].names


def test_old_job_stats_count_requests_and_have_no_histograms(trees: dict[str, dict[str, bytes]]) -> None:
    ending = "obdfilter/lustre-OST0002/job_stats"
    old, middle, new = (one(trees[name], ending)[1] for name in ("2.12", "2.15", "2.17"))
    assert b"hist:" in new
    assert b"hist:" not in middle
    assert b"start_time" in middle
    assert b"start_time" not in old
    assert b"unit:  reqs }" in old
    assert b"sumsq" not in old


ROOTS = "proc/fs/lustre/", "sys/fs/lustre/", "sys/kernel/debug/lustre/"


def places(paths: list[str]) -> dict[tuple[str, str], set[str]]:
    """Roots of each parameter, by the kind of its device and its name."""
    found: dict[tuple[str, str], set[str]] = {}
    for path in paths:
        root = next((root for root in ROOTS if path.startswith(root)), None)
        kind, *rest = path.removeprefix(root or "").split("/")
        if root and len(rest) > 1:
            found.setdefault((kind, "/".join(rest[1:])), set()).add(root)
    return found


@pytest.mark.parametrize("release", ["2.12", "2.13", "2.14", "2.15"])
def test_every_parameter_is_where_the_source_of_its_release_has_it(
        trees: dict[str, dict[str, bytes]], release: str) -> None:
    written: list[str] = []
    for role in ("client", "oss", "mds"):
        written += re.findall(r"^==> (\S+) <==$", (WRITTEN / release / f"{role}.txt").read_text(), re.MULTILINE)
    ours, source = places(list(trees[release])), places(written)
    both = ours.keys() & source.keys()
    assert {("osd-ldiskfs", "brw_stats"), ("mdd", "changelog_users"), ("llite", "statahead_max")} <= both
    assert {key: ours[key] for key in both} == {key: source[key] for key in both}


def test_up_to_2_13_operations_are_counted_and_not_timed(trees: dict[str, dict[str, bytes]]) -> None:
    for ending in ("obdfilter/lustre-OST0002/stats", "mdt/lustre-MDT0000/md_stats",
                   "llite/lustre-ff1100012ac8e000/stats"):
        old, later = (one(trees[name], ending)[1] for name in ("2.13", "2.14"))
        assert b"usec" in later
        assert b"usec" not in old
        assert stats.parse(old).names
        timed = {b"read", b"write"}
        assert stats.parse(old).names == tuple(name for name in stats.parse(later).names if name not in timed)


def test_headers_have_one_line_up_to_2_14(trees: dict[str, dict[str, bytes]]) -> None:
    for ending in ("obdfilter/lustre-OST0002/stats", f"osc/lustre-OST0002-osc-{CLIENT}/rpc_stats"):
        former, later = (one(trees[name], ending)[1] for name in ("2.14", "2.15"))
        assert b"start_time" in later
        assert b"start_time" not in former
    assert b"(secs.nsecs)" in one(trees["2.14"], f"osc/lustre-OST0002-osc-{CLIENT}/rpc_stats")[1]
    assert b"unit: usecs" in one(trees["2.14"], "obdfilter/lustre-OST0002/job_stats")[1]


def test_changelog_users_say_the_same(trees: dict[str, dict[str, bytes]]) -> None:
    reported = {name: changelog_users.parse(one(tree, "mdd/lustre-MDT0000/changelog_users")[1])
            for name, tree in trees.items()}
    assert {len(found.users) for found in reported.values()} == {1}
    assert len({found.current_index for found in reported.values()}) == 1
