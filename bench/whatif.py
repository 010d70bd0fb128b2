"""Whether ``tierctl whatif`` predicts what tierd then brings.

    python -m bench.whatif --hours 6 --seed 1

simulates hours of streams and neighbours without tierd, has lustre-exporter scraped every 15 s of virtual time, puts
that into a real Prometheus, and asks it. Then it simulates the same hours with tierd. Needs .tools/bin (make tools).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.jobs.large_files import StreamingReader, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.servers.objects import Capacity
from tests.tierd.whatif.past import kept, record
from tierd.clock import SystemClock
from tierd.config.settings import Settings
from tierd.simulation.beds import Bed, BedKind, draw_bed
from tierd.simulation.comparison import streams
from tierd.simulation.run import run
from tierd.whatif.command import asked, query_api
from tierd.whatif.report import as_text

HOUR = 3600.0
SPACE = 64


def hours_of_jobs(hours: int, seed: int) -> list[Job]:
    """A stream in each hour; for some time, also a neighbour that creates small files, or a trickle of them."""
    rng, jobs = Random(seed), list[Job]()
    for hour in range(hours):
        begin = hour * HOUR
        stream, file = (StreamingReader, "input") if rng.random() < 0.3 else (StreamingWriter, "stream")
        jobs.append(stream(job_id=f"ior.{1000 + hour}", path=f"/proj/flow{hour}/{file}.dat", start_seconds=begin + 60,
                           stop_seconds=begin + HOUR - 60))
        comes = begin + rng.uniform(300, 1200)
        jobs.append(SmallFileWriter(
            job_id=f"mdt_small.{2000 + hour}", directory=f"/proj/ingest{hour}", start_seconds=comes,
            stop_seconds=comes + rng.uniform(900, 2100), keep=rng.choice((200, 1000, 4000)),
            files_per_second=0.2 if rng.random() < 0.2 else rng.uniform(12, 40),
            rereads_per_second=rng.choice((0.0, 0.0, 5.0)),
            sizes=rng.choice(((1 << 20,), (64 << 10, 256 << 10, 1 << 20), (4 << 10, 32 << 10)))))
    return jobs


def spacious(bed: Bed) -> Bed:
    """The test bed with larger targets, so that none is full after some hours."""
    osts = tuple(replace(ost, device=replace(ost.device, size_bytes=SPACE * ost.device.size_bytes),
                         capacity=Capacity(SPACE * ost.capacity.size_bytes, SPACE * ost.capacity.inodes))
                 for ost in bed.cluster.osts)
    return replace(bed, cluster=replace(bed.cluster, osts=osts))


def moved(rates: Sequence[Sequence[float]]) -> float:
    """Bytes of MB/s in seconds."""
    return sum(map(sum, rates)) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    bed = spacious(draw_bed(BedKind.RECORDED, chosen.seed))
    seconds, jobs = chosen.hours * HOUR, bed.placed(hours_of_jobs(chosen.hours, chosen.seed))
    with tempfile.TemporaryDirectory() as name:
        off = FluidCluster(bed.cluster, jobs)
        begin, file = off.epoch, record(off, seconds, Path(name))
        with kept(file, Path(name)) as url:
            answer = asked(query_api(Settings(), url, "", SystemClock()), Settings(), begin - 60, off.epoch + 60)
    on = run(FluidCluster(bed.cluster, jobs), jobs, seconds, policy=Settings())
    predicted = answer.needed[-1].gain
    real = moved([on.rates[job.job_id] for job in streams(jobs)]) - moved(
        [off.throughput(job.job_id, 0, seconds) for job in streams(jobs)])
    lines = as_text(answer)
    lines.append(f"{chosen.hours} h: predicted {predicted.bytes / 1e9:.1f} GB ({predicted.low_bytes / 1e9:.1f} to "
                 f"{predicted.high_bytes / 1e9:.1f}), real {real / 1e9:.1f} GB")
    sys.stdout.write("\n".join((*lines, "")))


if __name__ == "__main__":
    main()
