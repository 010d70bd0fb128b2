"""Compares recorded episodes with the same jobs in the model: the share of its throughput that the stream kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bench.calibration import Row, share
from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.jobs import Job
from simulator.jobs.large_files import RandomWriter, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.settings import recorded_test_bed

STREAM = "ior_stream.1002"
TAPES = Path(__file__).parents[2] / "tests" / "tapes"
BEGINS, ENDS = 15.0, 75.0


def flash(size_bytes: int) -> Layout:
    return Layout((Component(0, size_bytes, "flash"), Component(size_bytes, None, "hdd")))


JOBS: Mapping[str, tuple[Job, ...]] = {
    "noisy-create-1m": (SmallFileWriter(start_seconds=BEGINS),),
    "noisy-flash-too-small": (SmallFileWriter(start_seconds=BEGINS, layout=flash(128 << 10)),),
    "noisy-random-4k": (RandomWriter(start_seconds=BEGINS),),
    "control-flash-covers": (SmallFileWriter(start_seconds=BEGINS, layout=flash(2 << 20)),),
    "control-two-streams": (
        StreamingWriter("ior_second.1001", BEGINS, path="/proj/second/stream.dat", client=1, file_bytes=512 << 20),
    ),
    "control-slow-disk": (),
    "control-quiet": (),
}
QUIET_HOST_SHARE = {"noisy-create-1m": 0.67, "noisy-flash-too-small": 0.71, "control-flash-covers": 1.0}
"""Share that the stream kept in the repetition without another recording on the same host."""


def rows() -> list[Row]:
    """Compare all tapes. Beside some of them another recording was made on the host: their repetitions count too."""
    found = []
    for name in JOBS:
        kept = recorded(name)
        found.append(Row(f"stream keeps, {name}", f"`tests/tapes/{name}`",
                         share(kept, QUIET_HOST_SHARE.get(name, kept)), share(simulated(name))))
    return found


def recorded(name: str) -> float:
    """The share of a tape."""
    means = json.loads((TAPES / name / "tape.json").read_text())["phase_mean_mb_s"]
    return float(means["contended"] / means["alone"])


def simulated(name: str, seed: int = 1) -> float:
    """The share in the model."""
    cluster = Cluster(recorded_test_bed(seed), (replace(StreamingWriter(), job_id=STREAM), *JOBS[name]))
    cluster.advance(BEGINS)
    if name == "control-slow-disk":
        for index in (2, 3, 4, 5):
            cluster.slow_down(index, 2.0)
    cluster.advance(ENDS - BEGINS)
    return cluster.log.mean(STREAM, BEGINS + 2, ENDS) / cluster.log.mean(STREAM, 2, BEGINS)
