"""Random scenarios on the recorded test bed: streams, noisy neighbours, harmless neighbours, slow disks.

One seed in ten is a hard workload: a neighbour that tierd missed or found late when the usual ones were written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.jobs import Job
from simulator.jobs.job import HDD
from simulator.jobs.large_files import RandomWriter, SharedFile, StreamingReader, StreamingWriter
from simulator.jobs.metadata import StepFiles
from simulator.jobs.small_files import SmallFileWriter
from simulator.scenarios.events import Event
from simulator.servers.mdt import MdtSettings
from simulator.settings import ClusterSettings, recorded_test_bed, with_nodes
from tierd.arrays import group_of
from tierd.simulation.beds import RECORDED, Bed, BedKind, draw_bed
from tierd.simulation.run import TimedChanges

KIB, MIB = 1 << 10, 1 << 20
SECONDS, NOISE_ENDS = 200.0, 170.0


HARD_SHARE = 0.1
"""Share of seeds with a hard workload."""


class Goal(StrEnum):
    """What an act of tierd is for, where no single job gains from it."""

    NONE = ""
    EVEN_POOL = "even pool"
    """At the end, no target of a pool is much fuller or emptier than the others."""
    METADATA_RATE = "metadata rate"
    """The job does more metadata operations, or tierd has undone its act."""


@dataclass(frozen=True, slots=True)
class RandomScenario:
    """Jobs and events of one scenario; ``suspects`` are the jobs that could be noisy neighbours."""

    kind: str
    jobs: tuple[Job, ...]
    suspects: tuple[str, ...]
    noise_starts: float
    changes: TimedChanges
    seconds: float = SECONDS
    served: tuple[str, ...] = ()
    """Jobs whose own files tierd may place better, if ``[act] on`` names such findings."""
    goal: Goal = Goal.NONE
    mdt: MdtSettings | None = None
    """Settings of both MDTs, if they differ from those of the test bed."""
    nodes: int = 0
    """Number of nodes with a mount and a NID each; 0 for the test bed's node with two mounts."""
    bed: Bed = RECORDED

    def cluster(self, seed: int) -> ClusterSettings:
        """The test bed, with the MDTs and as many nodes as the scenario needs."""
        bed = replace(self.bed.cluster, seed=seed)
        bed = with_nodes(bed, self.nodes) if self.nodes else bed
        return replace(bed, mdts=bed.mdts if self.mdt is None else (self.mdt,) * len(bed.mdts))

    @property
    def names(self) -> frozenset[str]:
        """Names under which a finding may blame the suspects: their job ids, and the array that they are."""
        places = {job.job_id: job.directory for job in self.jobs if isinstance(job, SmallFileWriter)}
        return frozenset((*self.suspects, *(group_of(job, places.get(job, "")) for job in self.suspects))) - {""}


def random_scenario(seed: int, workloads: Collection[str] = (), bed_kind: BedKind = BedKind.RECORDED) -> RandomScenario:
    """Make the scenario of a seed. It is the same for each call.

    ``workloads`` are names from :data:`USUAL` and :data:`HARD`: only these are drawn. By default all are, with one
    seed in ten for the hard ones. A seed with a usual workload has the same one with ``workloads=USUAL``. Workloads
    from :data:`PLACEMENT` are drawn if only such are named, and run on the recorded test bed.
    """
    hard_rng = Random(f"tierd-hard-scenario-{seed}")  # noqa: S311 -- a model, not a secret
    rng = Random(f"tierd-scenario-{seed}")  # noqa: S311 -- a model, not a secret
    if workloads and PLACEMENT.issuperset(workloads):
        return placement_scenario(seed, workloads)
    hard, usual = ([each for each in kinds if each[0] in workloads] for kinds in (HARD_KINDS, KINDS))
    if not workloads:
        hard, usual = list(HARD_KINDS), list(KINDS)
    starts = rng.uniform(45, 65)
    streams = [stream(rng, number) for number in range(rng.choice((1, 1, 1, 2)))]
    is_hard = hard_rng.random() < HARD_SHARE
    if not usual or (hard and is_hard):
        kind, noise = hard_rng.choice(hard)
        rng = Random(f"{kind} {seed}")  # noqa: S311 -- so it is the same whichever others are drawn from
    else:
        kind, noise = rng.choice(usual)
    if kind == NEW_STREAM:
        since = starts - rng.uniform(*ALONE_SECONDS)
        streams = [replace(job, start_seconds=since) for job in streams]
    neighbours = [replace(job, start_seconds=starts + rng.uniform(0, 3), stop_seconds=NOISE_ENDS) for job in noise(rng)]
    suspects = tuple(job.job_id for job in neighbours if isinstance(job, (SmallFileWriter, RandomWriter)))
    bed = draw_bed(bed_kind, seed)
    changes = [slow_disk(rng, bed.disks)] if rng.random() < 0.15 else []
    return RandomScenario(kind, tuple(bed.placed([*streams, *neighbours])), suspects, starts, changes, bed=bed)


def stream(rng: Random, number: int) -> Job:
    """A job that streams to or from the disks."""
    if rng.random() < 0.7:
        return StreamingWriter(job_id=f"ior_{number}.100{number}", path=f"/proj/flow{number}/stream.dat",
                               call_bytes=rng.choice((MIB, 4 * MIB, 16 * MIB)), threads=rng.choice((1, 2, 4)))
    return StreamingReader(job_id=f"reader_{number}.100{number}", path=f"/proj/flow{number}/in.dat", direct=True,
                           threads=rng.choice((1, 2, 4)))


def sizes(rng: Random, most: int = 4 * MIB) -> tuple[int, ...]:
    """Draw the sizes of small files: one, three or twenty sizes up to a limit in bytes."""
    largest = rng.choice([size for size in (16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB) if size <= most])
    return tuple(max(4096, int(largest * rng.uniform(0.1, 1.0))) for _ in range(rng.choice((1, 3, 20))))


def small_files_job(rng: Random) -> SmallFileWriter:
    return SmallFileWriter(job_id=rng.choice(("untar.1500", "post.1501", "mdt.1502")), sizes=sizes(rng),
                           files_per_second=rng.uniform(8, 40), directory=rng.choice(("/proj/in", "/home/u/run")),
                           keep=rng.choice((200, 400, 1000)))


def small_files(rng: Random) -> list[Job]:
    """A job that creates small files on the disks."""
    return [small_files_job(rng)]


def small_files_read_again(rng: Random) -> list[Job]:
    """A job that creates small files on the disks and reads them again."""
    return [replace(small_files_job(rng), rereads_per_second=rng.uniform(4, 20))]


def two_jobs_of_small_files(rng: Random) -> list[Job]:
    return [small_files_job(rng), replace(small_files_job(rng), job_id="other.1600", directory="/proj/other")]


def random_writes(rng: Random) -> list[Job]:
    return [RandomWriter(job_id="fio.1503", processes_count=rng.choice((4, 8, 16)),
                         call_bytes=rng.choice((4 * KIB, 8 * KIB, 16 * KIB)))]


def no_neighbour(_: Random) -> list[Job]:
    return []


def another_stream(rng: Random) -> list[Job]:
    """A further stream, which shares the bandwidth and is not noisy."""
    return [replace(stream(rng, 7), job_id="late.1700")]


def few_small_files(rng: Random) -> list[Job]:
    return [trickle(rng)]


def trickle(rng: Random) -> SmallFileWriter:
    return SmallFileWriter(job_id="trickle.1504", sizes=(64 * KIB,), files_per_second=rng.uniform(0.2, 1.5))


def small_files_on_flash(rng: Random) -> list[Job]:
    """A job whose small files are already on a flash component."""
    job = small_files_job(rng)
    end = 8 * MIB
    return [replace(job, layout=Layout((Component(0, end, "flash"), Component(end, None, "hdd"))))]


def another_stream_and_few_small_files(rng: Random) -> list[Job]:
    """A further stream that causes the loss, and at the same time a low rate of small files."""
    return [*another_stream(rng), *few_small_files(rng)]


def trickle_with_another_stream(rng: Random) -> list[Job]:
    """A further stream, and with it a few small files that may cost something. Both cause what streams lose."""
    few = trickle(rng)
    return [*another_stream(rng), replace(few, files_per_second=rng.uniform(5.0, 20.0), sizes=sizes(rng, MIB))]


def noise_that_builds_up(rng: Random) -> list[Job]:
    """Small files whose rate rises for half a minute to a minute and a half."""
    job = small_files_job(rng)
    return [replace(job, build_up_seconds=rng.uniform(30, 90))]


TASKS = 50
TASK_IDS = ("{array}_{task}", "{array}[{task}].pbs01", "{number}", "task{task}.1505")
"""Job ids of tasks: of Slurm and PBS as arrays, of Slurm as jobs, and of scripts with ``%e.%u``."""


def tasks_of_an_array(rng: Random) -> list[Job]:
    """Fifty equal jobs of small files, in one directory or each in its own.

    Jobs whose ids are plain numbers share a directory: in directories of their own nothing shows that they belong
    together.
    """
    form, array, together = rng.choice(TASK_IDS), rng.randrange(1000, 9_000_000), rng.uniform(12, 40)
    drawn, own_directories = sizes(rng), rng.random() < 0.5 and form != "{number}"
    return [SmallFileWriter(job_id=form.format(array=array, task=task, number=array + task), sizes=drawn,
                            files_per_second=together / TASKS, threads=1, keep=20, prefix=f"t{task}.",
                            directory=f"/proj/run/t{task}" if own_directories else "/proj/run")
            for task in range(1, TASKS + 1)]


def bursts_of_small_files(rng: Random) -> list[Job]:
    """Small files for about 10 s, and none for as long."""
    job = small_files_job(rng)
    return [replace(job, burst_seconds=rng.uniform(8, 12), files_per_second=rng.uniform(20, 60))]


def small_files_on_a_new_stream(rng: Random) -> list[Job]:
    """Small files whose victims began less than four windows earlier."""
    return small_files(rng)


Kinds = tuple[tuple[str, Callable[[Random], list[Job]]], ...]
"""Names of workloads, and what draws their neighbours."""


def _named(*noises: Callable[[Random], list[Job]]) -> Kinds:
    return tuple((noise.__name__.replace("_", " "), noise) for noise in noises)


KINDS: Kinds = _named(
    small_files, small_files, small_files_read_again, two_jobs_of_small_files, random_writes,
    no_neighbour, another_stream, few_small_files, small_files_on_flash, another_stream_and_few_small_files)
HARD_KINDS: Kinds = _named(
    trickle_with_another_stream, noise_that_builds_up, tasks_of_an_array, bursts_of_small_files,
    small_files_on_a_new_stream)
USUAL, HARD = frozenset(name for name, _ in KINDS), frozenset(name for name, _ in HARD_KINDS)
NEW_STREAM = _named(small_files_on_a_new_stream)[0][0]
ALONE_SECONDS = 3.0, 15.0
"""Seconds that streams have alone in the workload :data:`NEW_STREAM`: at most three windows."""


PLACEMENT_SECONDS = 700.0
"""Length of scenarios in which jobs close their files and use them again."""


def placement_scenario(seed: int, workloads: Collection[str]) -> RandomScenario:
    """A stream, and a job whose own files could be placed better."""
    rng = Random(f"tierd-placement-scenario-{seed}")  # noqa: S311 -- a model, not a secret
    kind = rng.choice([name for name in (*dict(PLACEMENT_KINDS), *GOAL_KINDS) if name in workloads])
    if kind in GOAL_KINDS:
        return GOAL_KINDS[kind](rng)
    draw = dict(PLACEMENT_KINDS)[kind]
    streams = [replace(stream(rng, 0), start_seconds=0.0)] if rng.random() < 0.4 else []
    served = [replace(job, start_seconds=rng.uniform(20, 40)) for job in draw(rng)]
    return RandomScenario(kind, (*streams, *served), (), 20.0, [slow_disk(rng)] if rng.random() < 0.15 else [],
                          seconds=PLACEMENT_SECONDS, served=tuple(job.job_id for job in served),
                          nodes=max(job.nodes for job in served))


LONG_SECONDS = 1450.0
"""Length of scenarios with moves of up to 1 GB, or with directories over MDTs, which are judged after 15 minutes."""


def uneven_pool(rng: Random) -> RandomScenario:
    """One or two disk targets with many old files, beside a stream, small files, or both."""
    others = rng.choice(((stream,), (few_small_files,), (stream, few_small_files)))
    jobs: list[Job] = []
    for draw in others:
        jobs += [stream(rng, 0)] if draw is stream else few_small_files(rng)
    full = rng.sample(range(2, 6), rng.choice((1, 1, 2)))
    size = rng.choice((1, 2, 4, 8)) * MIB
    room = recorded_test_bed().osts[2].capacity.size_bytes
    changes = [(1.0, Event(1.0, "files", {
        "directory": f"/proj/old{target}", "target": f"OST{target:04x}", "size_bytes": size,
        "files": int(rng.uniform(0.35, 0.6) * room / size), "idle_days": rng.uniform(30, 300)})) for target in full]
    return RandomScenario(UNEVEN_POOL, tuple(jobs), (), 20.0, changes, seconds=LONG_SECONDS, goal=Goal.EVEN_POOL)


def files_of_steps(rng: Random) -> RandomScenario:
    """A job that makes a directory for each step. It gains from a second MDT if several nodes wait for the first."""
    nodes, threads = rng.choice(((1, 16), (1, 40), (2, 8), (4, 8), (8, 4), (12, 4)))
    job = StepFiles(nodes=nodes, threads=threads, files_each=rng.randrange(2000, 5000) // (nodes * threads))
    mdt = MdtSettings(cores=rng.choice((1, 2, 4)), work_factor=rng.uniform(30, 80))
    return RandomScenario(STEPS, (job,), suspects=(), noise_starts=20.0, changes=(), seconds=LONG_SECONDS,
                          served=(job.job_id,), goal=Goal.METADATA_RATE, mdt=mdt, nodes=nodes)


def small_files_that_are_hot(rng: Random) -> list[Job]:
    """A job that reads its small files again and again, and creates a few."""
    return [SmallFileWriter(job_id="py.1800", directory="/sw/lib", sizes=sizes(rng, 256 * KIB), keep=3000,
                            files_per_second=rng.uniform(0.5, 2.0), rereads_per_second=rng.uniform(15, 40))]


def random_io_in_runs(rng: Random) -> list[Job]:
    """Small random I/O in one file, which the job closes and opens again."""
    return [RandomWriter(job_id="db.1801", path="/proj/db/table.dat", file_bytes=rng.choice((64, 128, 256)) * MIB,
                         processes_count=rng.choice((2, 4)), call_bytes=rng.choice((4 * KIB, 16 * KIB)),
                         read_share=rng.choice((0.0, 0.5, 0.9)), run_seconds=rng.uniform(60, 120),
                         pause_seconds=rng.uniform(20, 60), layout=HDD)]


def shared_file_in_runs(rng: Random) -> list[Job]:
    """One file of one or two stripes that many processes write, in several runs."""
    layout = Layout((Component(0, None, "hdd", rng.choice((1, 1, 2)), MIB),), composite=False)
    return [SharedFile(job_id="mpi.1802", path="/proj/shared/one.dat", nodes=8, threads=2,
                       piece_bytes=MIB, pieces_each=rng.choice((25, 40)), think_seconds=1.0, direct=True,
                       layout=layout, runs=20, period_seconds=rng.uniform(200, 280))]


def stream_in_runs(rng: Random) -> list[Job]:
    """A large file with one stripe that a job reads from the beginning, in several runs."""
    return [StreamingReader(job_id="scan.1803", path="/proj/big/one.dat", file_bytes=rng.choice((256, 512)) * MIB,
                            direct=True, threads=4, layout=HDD, run_seconds=rng.uniform(60, 150),
                            pause_seconds=rng.uniform(30, 80))]


def small_files_with_stripes(rng: Random) -> list[Job]:
    """A job that creates small files with four stripes each."""
    job = small_files_job(rng)
    return [replace(job, job_id="wide.1804", layout=Layout((Component(0, None, "hdd", 4, MIB),), composite=False))]


PLACEMENT_KINDS: Kinds = _named(small_files_that_are_hot, random_io_in_runs, shared_file_in_runs, stream_in_runs,
                                small_files_with_stripes)
UNEVEN_POOL, STEPS = "uneven pool", "files of steps"
GOAL_KINDS: Mapping[str, Callable[[Random], RandomScenario]] = {UNEVEN_POOL: uneven_pool, STEPS: files_of_steps}
"""Placement workloads that draw more than jobs."""
PLACEMENT = frozenset((*dict(PLACEMENT_KINDS), *GOAL_KINDS))
GROUPS: Mapping[str, frozenset[str]] = {"usual": USUAL, "hard": HARD, "placement": PLACEMENT}


def slow_disk(rng: Random, disks: Sequence[int] = RECORDED.disks) -> tuple[float, Callable[[Cluster], None]]:
    """Slow one disk or all disks at a random time."""
    targets = (disks[rng.randrange(len(disks))],) if rng.random() < 0.5 else tuple(disks)
    factor = rng.uniform(1.3, 3.0)

    def happens(cluster: Cluster) -> None:
        for target in targets:
            cluster.slow_down(target, factor)

    return rng.uniform(20, 160), happens
