"""Random scenarios on the recorded test bed: streams, noisy neighbours, harmless neighbours, slow disks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.jobs import Job
from simulator.jobs.large_files import RandomWriter, StreamingReader, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from tierd.simulation.run import TimedChanges

KIB, MIB = 1 << 10, 1 << 20
SECONDS, NOISE_ENDS = 200.0, 170.0


@dataclass(frozen=True, slots=True)
class RandomScenario:
    """Jobs and events of one scenario; ``suspects`` are the jobs that could be noisy neighbours."""

    kind: str
    jobs: tuple[Job, ...]
    suspects: tuple[str, ...]
    noise_starts: float
    changes: TimedChanges


def random_scenario(seed: int) -> RandomScenario:
    """Make the scenario of a seed. It is the same for each call."""
    rng = Random(f"tierd-scenario-{seed}")  # noqa: S311 -- a model, not a secret
    starts = rng.uniform(45, 65)
    streams = [stream(rng, number) for number in range(rng.choice((1, 1, 1, 2)))]
    kind, noise = rng.choice(KINDS)
    neighbours = [replace(job, start_seconds=starts + rng.uniform(0, 3), stop_seconds=NOISE_ENDS)
                  for job in noise(rng)]
    suspects = tuple(job.job_id for job in neighbours if isinstance(job, (SmallFileWriter, RandomWriter)))
    changes = [slow_disk(rng)] if rng.random() < 0.15 else []
    return RandomScenario(kind, (*streams, *neighbours), suspects, starts, changes)


def stream(rng: Random, number: int) -> Job:
    """A job that streams to or from the disks."""
    if rng.random() < 0.7:
        return StreamingWriter(job_id=f"ior_{number}.100{number}", path=f"/proj/flow{number}/stream.dat",
                               call_bytes=rng.choice((MIB, 4 * MIB, 16 * MIB)), threads=rng.choice((1, 2, 4)))
    return StreamingReader(job_id=f"reader_{number}.100{number}", path=f"/proj/flow{number}/in.dat", direct=True,
                           threads=rng.choice((1, 2, 4)))


def sizes(rng: Random) -> tuple[int, ...]:
    """Draw the sizes of small files: one, three or twenty sizes."""
    largest = rng.choice((16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB))
    return tuple(max(4096, int(largest * rng.uniform(0.1, 1.0))) for _ in range(rng.choice((1, 3, 20))))


def small_files(rng: Random) -> list[Job]:
    """A job that creates small files on the disks."""
    return [SmallFileWriter(job_id=rng.choice(("untar.1500", "post.1501", "mdt.1502")), sizes=sizes(rng),
                            files_per_second=rng.uniform(8, 40), directory=rng.choice(("/proj/in", "/home/u/run")),
                            keep=rng.choice((200, 400, 1000)))]


def small_files_read_again(rng: Random) -> list[Job]:
    """A job that creates small files on the disks and reads them again."""
    return [replace(job, rereads_per_second=rng.uniform(4, 20)) for job in small_files(rng)
            if isinstance(job, SmallFileWriter)]


def two_jobs_of_small_files(rng: Random) -> list[Job]:
    """Two neighbours in two directories."""
    first, second = small_files(rng)[0], small_files(rng)[0]
    assert isinstance(first, SmallFileWriter)
    assert isinstance(second, SmallFileWriter)
    return [first, replace(second, job_id="other.1600", directory="/proj/other")]


def random_writes(rng: Random) -> list[Job]:
    """Small random writes in one file."""
    return [RandomWriter(job_id="fio.1503", processes_count=rng.choice((4, 8, 16)),
                         call_bytes=rng.choice((4 * KIB, 8 * KIB, 16 * KIB)))]


def no_neighbour(_: Random) -> list[Job]:
    """No neighbour."""
    return []


def another_stream(rng: Random) -> list[Job]:
    """A further stream, which shares the bandwidth and is not noisy."""
    return [replace(stream(rng, 7), job_id="late.1700")]


def few_small_files(rng: Random) -> list[Job]:
    """A job that creates small files at a low rate."""
    return [SmallFileWriter(job_id="trickle.1504", sizes=(64 * KIB,), files_per_second=rng.uniform(0.2, 1.5))]


def small_files_on_flash(rng: Random) -> list[Job]:
    """A job whose small files are already on a flash component."""
    (job,) = small_files(rng)
    assert isinstance(job, SmallFileWriter)
    end = 8 * MIB
    return [replace(job, layout=Layout((Component(0, end, "flash"), Component(end, None, "hdd"))))]


def another_stream_and_few_small_files(rng: Random) -> list[Job]:
    """A further stream that causes the loss, and at the same time a low rate of small files."""
    return [*another_stream(rng), *few_small_files(rng)]


KINDS: tuple[tuple[str, Callable[[Random], list[Job]]], ...] = tuple(
    (noise.__name__.replace("_", " "), noise) for noise in (
        small_files, small_files, small_files_read_again, two_jobs_of_small_files, random_writes,
        no_neighbour, another_stream, few_small_files, small_files_on_flash, another_stream_and_few_small_files))


def slow_disk(rng: Random) -> tuple[float, Callable[[Cluster], None]]:
    """Slow one disk or all disks at a random time."""
    targets = (rng.randrange(2, 6),) if rng.random() < 0.5 else (2, 3, 4, 5)
    factor = rng.uniform(1.3, 3.0)

    def happens(cluster: Cluster) -> None:
        for target in targets:
            cluster.slow_down(target, factor)

    return rng.uniform(20, 160), happens
