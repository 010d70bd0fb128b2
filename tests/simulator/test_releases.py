"""The same counters, as other releases lay them out; the project's parsers read them all."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lustre.formats import changelog_users, job_stats, read_ahead_stats, rpc_stats, stats
from simulator.cluster import Cluster
from simulator.jobs.large_files import StreamingReader, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.parameters import render
from simulator.releases import RELEASES
from simulator.settings import recorded_test_bed
from tests.exporter.written import WRITTEN

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
