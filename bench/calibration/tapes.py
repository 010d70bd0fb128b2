"""Compares recorded episodes with the same jobs in the model: share that the stream kept, load of targets, RPCs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.calibration import Row, share
from lustre.formats import job_stats, rpc_stats
from lustre.layout.model import Component, Layout
from lustre.unpack import unpack
from simulator.cluster import Cluster
from simulator.jobs import Job
from simulator.jobs.large_files import RandomWriter, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.parameters import write_parameters
from simulator.settings import recorded_test_bed

STREAM = "ior_stream.1002"
TAPES = Path(__file__).parents[2] / "tests" / "tapes"
HDD = tuple(f"lustre-OST{index:04d}" for index in range(2, 6))
ALL = tuple(f"lustre-OST{index:04d}" for index in range(6))
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
        kept = recorded(name).kept_share
        found.append(Row(f"stream keeps, {name}", f"`tests/tapes/{name}`",
                         share(kept, QUIET_HOST_SHARE.get(name, kept)), share(simulated(name).kept_share)))
    return found


@dataclass(frozen=True, slots=True)
class Episode:
    kept_share: float
    target_shares: Mapping[str, float]
    """Of all bytes written in the contended phase."""
    rpc_pages: Sequence[float]
    """Of the stream's writes, share per power of two."""
    latency_usec: Sequence[float]
    """Shares of the stream's write RPCs, per power of two of about a microsecond."""
    latency_mean_usec: float


def recorded(name: str) -> Episode:
    """A tape: differences between the first and the last snapshot of its contended phase."""
    facts = json.loads((TAPES / name / "tape.json").read_text())
    phase = next(phase for phase in facts["phases"] if phase["name"] == "contended")
    inside = [n for n, time in enumerate(facts["snapshot_times"]) if phase["start"] + 5 <= time <= phase["end"] - 1]
    instance = facts["mounts"]["A"]["llite"].removeprefix("lustre-")
    with tempfile.TemporaryDirectory() as folder:
        wanted = {f"{inside[0]:03d}", f"{inside[-1]:03d}"}
        unpack(TAPES / name / "tape.tar.xz", Path(folder), lambda member: member.partition("/")[0] in wanted)
        first, last = (Path(folder) / f"{n:03d}" for n in (inside[0], inside[-1]))
        means = facts["phase_mean_mb_s"]
        return _episode(_tree(first), _tree(last), instance, means["contended"] / means["alone"])


def simulated(name: str, seed: int = 1) -> Episode:
    stream = replace(StreamingWriter(), job_id=STREAM)
    cluster = Cluster(recorded_test_bed(seed), (stream, *JOBS[name]))
    with tempfile.TemporaryDirectory() as folder:
        roots = Path(folder) / "first", Path(folder) / "last"
        cluster.advance(BEGINS)
        if name == "control-slow-disk":
            for index in (2, 3, 4, 5):
                cluster.slow_down(index, 2.0)
        cluster.advance(5)
        write_parameters(cluster, roots[0])
        cluster.advance(ENDS - BEGINS - 5)
        write_parameters(cluster, roots[1])
        kept = cluster.log.mean(STREAM, BEGINS + 2, ENDS) / cluster.log.mean(STREAM, 2, BEGINS)
        return _episode(_tree(roots[0]), _tree(roots[1]), cluster.clients[0].settings.instance, kept)


Tree = Mapping[str, bytes]


def _tree(root: Path) -> Tree:
    found = {}
    for pattern in ("proc/fs/lustre/obdfilter/*/job_stats", "sys/kernel/debug/lustre/osc/*/rpc_stats"):
        found.update({str(path.relative_to(root)): path.read_bytes() for path in root.glob(pattern)})
    return found


def _episode(first: Tree, last: Tree, instance: str, kept: float) -> Episode:
    written = {name: _written(last, name) - _written(first, name) for name in ALL}
    total = sum(written.values()) or 1
    pages, latency = _stream(last, first, instance)
    usecs = sum(share * 1.5 * 2 ** max(bucket - 1, 0) for bucket, share in enumerate(latency))
    return Episode(kept, {name: size / total for name, size in written.items()}, pages, latency, usecs)


def _written(tree: Tree, target: str) -> int:
    jobs = job_stats.parse(tree.get(f"proc/fs/lustre/obdfilter/{target}/job_stats", b"")).jobs
    return sum(int(job.sums[job.names.index(b"write_bytes")]) for job in jobs if b"write_bytes" in job.names)


def _stream(last: Tree, first: Tree, instance: str) -> tuple[list[float], list[float]]:
    pages, latency = [0] * 32, [0] * 32
    for target in HDD:
        path = f"sys/kernel/debug/lustre/osc/{target}-osc-{instance}/rpc_stats"
        for tree, sign in ((last, 1), (first, -1)):
            parsed = rpc_stats.parse(tree[path])
            for whole, histogram in ((pages, parsed.pages_per_rpc), (latency, parsed.latency_usec)):
                if histogram is not None:
                    for upper, count in zip(histogram.uppers, histogram.columns[-1], strict=True):
                        whole[min(upper.bit_length(), 31)] += sign * count
    return _shares(pages), _shares(latency)


def _shares(counts: Sequence[int]) -> list[float]:
    whole = sum(counts) or 1
    return [count / whole for count in counts]


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    """Distance of two distributions, from 0 to 1. A shift to the next bucket counts half."""
    moved = carried = 0.0
    for a, b in zip(one, other, strict=True):
        carried += a - b
        moved += abs(carried)
    return moved / 2
