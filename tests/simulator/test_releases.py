"""The same counters, as other releases lay them out; the project's parsers read them all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lustre.text import job_stats, read_ahead_stats, rpc_stats, stats
from simulator.cluster import Cluster
from simulator.jobs import SmallFileWriter, StreamingReader, StreamingWriter
from simulator.parameters import render
from simulator.releases import RELEASES
from simulator.settings import recorded_test_bed

CLIENT = "ff110001298dd800"


@pytest.fixture(scope="module")
def trees() -> dict[str, dict[str, bytes]]:
    found = {}
    for name, release in RELEASES.items():
        jobs = (StreamingWriter(), SmallFileWriter(), StreamingReader(path="/proj/in/a", client=1))
        cluster = Cluster(replace(recorded_test_bed(), version=release.version), jobs)
        cluster.advance(6)
        found[name] = render(cluster)
    return found


def one(tree: dict[str, bytes], ending: str) -> tuple[str, bytes]:
    (path,) = [path for path in tree if path.endswith(ending)]
    return path, tree[path]


@pytest.mark.parametrize("release", ["2.12", "2.15", "2.17"])
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


def test_places_moved(trees: dict[str, dict[str, bytes]]) -> None:
    ending = "obdfilter/lustre-OST0002/stats"
    assert one(trees["2.12"], ending)[0] == f"proc/fs/lustre/{ending}"
    assert one(trees["2.15"], ending)[0] == f"proc/fs/lustre/{ending}"
    assert one(trees["2.17"], ending)[0] == f"sys/kernel/debug/lustre/{ending}"
    assert one(trees["2.12"], "sys/fs/lustre/version")[1] == b"2.12.9\n"


def test_old_job_stats_count_requests_and_have_no_histograms(trees: dict[str, dict[str, bytes]]) -> None:
    ending = "obdfilter/lustre-OST0002/job_stats"
    old, middle, new = (one(trees[name], ending)[1] for name in ("2.12", "2.15", "2.17"))
    assert b"hist:" in new
    assert b"hist:" not in middle
    assert b"start_time" in middle
    assert b"start_time" not in old
    assert b"unit:  reqs }" in old
    assert b"sumsq" not in old
