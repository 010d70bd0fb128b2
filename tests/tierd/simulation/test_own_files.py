"""Acts for a job's own large files on the simulated test bed: done once closed, judged by the job's rate, undone."""

from dataclasses import replace
from pathlib import Path

from lustre.layout.model import Component, Layout, explain
from simulator.cluster import Cluster
from simulator.jobs import Job
from simulator.jobs.large_files import RandomWriter, SharedFile, StreamingReader
from simulator.jobs.small_files import SmallFileWriter
from simulator.settings import recorded_test_bed, with_nodes
from tests.tierd.simulated import HDD, World, world
from tests.tierd.simulation.test_data_on_mdt import layout_of
from tierd.acts import ActKind, Outcome, Verdict
from tierd.config.load import parse

MIB = 1 << 20
DATABASE = RandomWriter(job_id="db.4", path="/proj/rand/table.dat", file_bytes=64 * MIB, processes_count=8,
                        layout=HDD, run_seconds=90.0, pause_seconds=45.0, think_seconds=0.03)
"""The pause between its writes limits it on flash. Thousands of writes per second take long to simulate."""
STRIDED = SharedFile(job_id="mpi.5", path="/proj/shared/one.dat", nodes=8, threads=2, piece_bytes=MIB, pieces_each=70,
                     direct=True, layout=HDD, start_seconds=8.0, runs=20, period_seconds=300.0)


def lived(tmp_path: Path, job: Job, until: float, kind: str, text: str = "", dry_run: bool = False) -> World:
    settings = parse(f"[act]\non = ['{kind}']\n{text}".encode(), "t.toml")
    at = world(tmp_path, (job,), settings, dry_run, model=Cluster, bed=with_nodes(recorded_test_bed(), job.nodes))
    at.run(until)
    return at


def moves(at: World, outcome: Outcome = Outcome.DONE) -> list[str]:
    return [entry.place for entry in at.journal.entries(outcome) if entry.kind == ActKind.MIGRATE]


def test_a_file_with_random_io_goes_to_flash_once_it_is_closed(tmp_path: Path) -> None:
    at = lived(tmp_path, DATABASE, 420, "small-random-io")
    assert any("FOUND small-random-io" in said for said in at.said)
    assert moves(at) == [DATABASE.path]
    assert layout_of(at, DATABASE.path) == "whole file on flash (2 stripes of 4M)"
    assert at.rate("db.4", 290, 350) > 2 * at.rate("db.4", 10, 85)
    (case,) = [case for case in at.daemon.store if case.moved]
    assert case.verdict == Verdict.HELPED
    entry = next(entry for entry in at.journal.entries(Outcome.DONE) if entry.kind == ActKind.MIGRATE)
    at.cluster.stop("db.4")
    at.run(450)
    assert at.undo(entry, "by a person").outcome == Outcome.UNDONE
    assert layout_of(at, DATABASE.path).startswith("whole file on hdd (1 stripe)")


def test_a_shared_file_gets_a_stripe_on_each_target_once_it_is_closed(tmp_path: Path) -> None:
    at = lived(tmp_path, STRIDED, 690, "shared-file-contention",
               "[restripe]\noverstripe = false\nbenefit_factor = 1.0\n")
    assert moves(at) == [STRIDED.path]
    assert layout_of(at, STRIDED.path).startswith("whole file on hdd (4 stripes")
    before, after = at.cluster.throughput("mpi.5", 18, 58), at.cluster.throughput("mpi.5", 611, 621)
    assert sum(after) / 10 > 3 * sum(before) / 40
    (case,) = [case for case in at.daemon.store if case.moved]
    assert case.verdict == Verdict.HELPED
    entry = next(entry for entry in at.journal.entries(Outcome.DONE) if entry.kind == ActKind.MIGRATE)
    assert at.undo(entry, "by a person").outcome == Outcome.UNDONE
    assert layout_of(at, STRIDED.path).startswith("whole file on hdd (1 stripe)")


def test_runs_too_short_to_be_seen_while_the_file_is_open_are_learnt_from_the_changelog(tmp_path: Path) -> None:
    short = replace(STRIDED, pieces_each=35, period_seconds=170.0)  # 35 s, until the file has more stripes
    at = lived(tmp_path, short, 330, "shared-file-contention", "[restripe]\noverstripe = false\nbenefit_factor = 1.0\n")
    assert any("FOUND shared-file-contention" in said and "in each of 2 runs of its user there" in said
               for said in at.said), at.said
    assert moves(at) == [short.path]
    assert layout_of(at, short.path).startswith("whole file on hdd (4 stripes")


def test_a_shared_file_in_use_is_tried_a_few_times(tmp_path: Path) -> None:
    busy = replace(STRIDED, period_seconds=160.0)  # no pause is long enough for the copy
    at = lived(tmp_path, busy, 900, "shared-file-contention", "[restripe]\nbenefit_factor = 1.0\n")
    given_way = moves(at, Outcome.GAVE_WAY)
    assert 1 <= len(given_way) <= 2
    assert moves(at) == []
    assert layout_of(at, busy.path).startswith("whole file on hdd (1 stripe)")


def test_small_files_with_several_stripes_get_one(tmp_path: Path) -> None:
    wide = Layout((Component(0, None, "hdd", 4, MIB),), composite=False)
    job = SmallFileWriter(job_id="mk.7", directory="/proj/many", sizes=(20 << 10,), files_per_second=8.0, layout=wide,
                          keep=3000)
    at = lived(tmp_path, job, 140, "striping")
    assert layout_of(at, "/proj/many") == "first 4M on hdd (1 stripe), rest on hdd (4 stripes of 1M)"
    (entry,) = [entry for entry in at.journal.entries(Outcome.DONE) if entry.kind == ActKind.SET_DEFAULT_LAYOUT]
    assert at.undo(entry, "by a person").outcome == Outcome.UNDONE
    assert layout_of(at, "/proj/many") == explain(wide)


def test_a_stream_on_one_target_gets_several_stripes(tmp_path: Path) -> None:
    job = StreamingReader(job_id="ior.6", path="/proj/big/one.dat", file_bytes=256 * MIB, direct=True, layout=HDD,
                          threads=4, run_seconds=150.0, pause_seconds=60.0)
    at = lived(tmp_path, job, 460, "striping", "[detect.striping]\nmin_bytes_per_second = 5e6\n")
    assert moves(at) == [job.path]
    assert layout_of(at, job.path).startswith("whole file on hdd (2 stripes")
    assert sum(at.cluster.throughput("ior.6", 220, 350)) > 1.5 * sum(at.cluster.throughput("ior.6", 10, 140))
