"""The model of flows against the model of events, where both can be run; and its size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lustre.layout import Component, Layout
from lustre.text import job_stats
from simulator.client import ClientSettings
from simulator.cluster import Cluster
from simulator.fluid import FluidCluster
from simulator.jobs import Job, RandomWriter, SmallFileWriter, StreamingWriter
from simulator.settings import ClusterSettings, recorded_test_bed

STREAM = "ior_stream.1002"
COVERS = Layout((Component(0, 2 << 20, "flash"), Component(2 << 20, None, "hdd")))
TOO_SMALL = Layout((Component(0, 128 << 10, "flash"), Component(128 << 10, None, "hdd")))


@pytest.mark.parametrize(
    "others",
    [
        (),
        (SmallFileWriter(),),
        (SmallFileWriter(layout=COVERS),),
        (SmallFileWriter(layout=TOO_SMALL),),
        (RandomWriter(),),
        (StreamingWriter("ior_second.1001", "/proj/second/stream.dat", client=1, file_bytes=512 << 20),),
    ],
    ids=["alone", "small files", "flash covers", "flash too small", "random 4 KiB", "second stream"],
)
def test_flows_get_what_events_get(others: tuple[Job, ...]) -> None:
    events = Cluster(recorded_test_bed(), (StreamingWriter(), *others))
    flows = FluidCluster(recorded_test_bed(), (StreamingWriter(), *others))
    events.advance(30)
    flows.advance(30)
    alone = 66.6
    difference = flows.log.mean(STREAM, 10, 30) - events.log.mean(STREAM, 10, 30)
    assert abs(difference) < 0.1 * alone


def test_a_slow_target_holds_a_striped_stream_back() -> None:
    flows = FluidCluster(recorded_test_bed(), (StreamingWriter(),))
    flows.advance(10)
    flows.slow_down(3, 2.0)
    flows.advance(10)
    assert flows.log.mean(STREAM, 11, 20) == pytest.approx(0.5 * flows.log.mean(STREAM, 0, 10), rel=0.1)


def test_jobs_come_and_go_and_change() -> None:
    noise = SmallFileWriter(start_seconds=10.0, stop_seconds=20.0)
    flows = FluidCluster(recorded_test_bed(), (StreamingWriter(), noise))
    flows.advance(30)
    rates = [flows.log.mean(STREAM, since, since + 8) for since in (1, 11, 21)]
    assert rates[1] < 0.8 * rates[0]
    assert rates[2] == pytest.approx(rates[0])
    assert flows.log.mean(noise.job_id, 21, 29) == 0
    flows.change(STREAM, {"nodes": 1, "threads": 1, "think_seconds": 10.0})
    flows.advance(5)
    assert flows.log.mean(STREAM, 31, 35) < 2


def test_counters_are_the_bytes_that_flowed(tmp_path: Path) -> None:
    flows = FluidCluster(recorded_test_bed(), (StreamingWriter(),))
    flows.advance(20)
    assert flows.write_parameters(tmp_path) == 2 * len(flows.targets)
    parsed = job_stats.parse((tmp_path / "proc/fs/lustre/obdfilter/lustre-OST0002/job_stats").read_bytes())
    (job,) = parsed.jobs
    written = int(job.sums[job.names.index(b"write_bytes")])
    assert written == pytest.approx(sum(flows.throughput(STREAM, 0, 20)) * 1e6 / 4, rel=0.02)


def large(clients: int, targets: int) -> ClusterSettings:
    bed = recorded_test_bed()
    flash, hdd = bed.osts[0], bed.osts[2]
    quarter = targets // 4
    return replace(
        bed,
        osts=(flash,) * quarter + (hdd,) * (targets - quarter),
        pools={"flash": tuple(range(quarter)), "hdd": tuple(range(quarter, targets))},
        clients=tuple(ClientSettings(instance=f"ff{n:08d}") for n in range(clients)),
    )


def test_ten_thousand_clients_and_four_hundred_targets() -> None:
    jobs: list[Job] = [
        StreamingWriter(f"ior{n}.{n}", f"/p{n}/f", client=n * 400, nodes=400, start_seconds=n) for n in range(20)
    ]
    jobs += [SmallFileWriter(f"small{n}.{n}", f"/s{n}", client=8000 + n * 400, nodes=400) for n in range(5)]
    flows = FluidCluster(large(10_000, 400), jobs)
    flows.advance(600)
    total = sum(flows.log.mean(job.job_id, 100, 600) for job in jobs if isinstance(job, StreamingWriter))
    assert 0 < total < 300 * 16.8
