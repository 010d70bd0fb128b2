"""Data on the MDT for a neighbour and for hot small files, on the simulated test bed: done, judged, undone."""

from dataclasses import replace
from pathlib import Path

import pytest

from lustre.layout.model import Component, Layout, explain
from simulator.cluster import Cluster
from simulator.jobs.small_files import SmallFileWriter
from tests.tierd.simulated import HDD, STREAM, World, world
from tierd.acts import ActKind, Outcome, Verdict
from tierd.config.load import parse
from tierd.daemon.states import State

KIB = 1 << 10
ON_MDT = "first 64K on the MDT, rest on hdd (1 stripe)"
READING = SmallFileWriter(job_id="py.3", directory="/sw/lib", sizes=(20 * KIB, 60 * KIB), files_per_second=6.0,
                          keep=400, rereads_per_second=40.0, start_seconds=60.0, layout=HDD)
ALLOWED = "[act]\non = ['noisy-neighbour', 'data-on-mdt']\n"


def layout_of(at: World, path: str) -> str:
    layout = at.filesystem.layout(path)
    return "" if layout is None else explain(layout)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> World:
    at = world(tmp_path_factory.mktemp("done"), (STREAM, READING), parse(ALLOWED.encode(), "t.toml"))
    at.run(260)
    return at


def test_a_neighbour_that_reads_its_files_gets_them_on_the_mdt(done: World) -> None:
    assert layout_of(done, "/sw/lib") == ON_MDT
    assert done.rate("ior_stream.1002", 220, 260) > 0.95 * done.rate("ior_stream.1002", 20, 58)
    moved = [e for e in done.journal.entries(Outcome.DONE) if e.kind == ActKind.MIGRATE]
    assert all(e.layout_after is not None and e.layout_after.components[0].on_mdt for e in moved)
    (case,) = [case for case in done.daemon.store if case.defaults]
    assert case.verdict == Verdict.HELPED
    assert done.journal.judgements.won_back_by_pool("noisy-neighbour")[""][0] > 0.2


def test_an_mdt_that_runs_short_of_space_gives_everything_back(tmp_path: Path) -> None:
    alone = replace(READING, start_seconds=0.0, files_per_second=1.0, keep=3000)
    at = world(tmp_path, (alone,), parse(b"[act]\non = ['hot-small-files', 'data-on-mdt']\n", "t.toml"), model=Cluster)
    at.run(150)
    assert layout_of(at, "/sw/lib") == ON_MDT
    moved = [e for e in at.journal.entries(Outcome.DONE) if e.kind == ActKind.MIGRATE]
    assert moved
    assert all(e.layout_after is not None and e.layout_after.components[0].on_mdt for e in moved)
    on_mdt = Layout((Component(0, 1 << 30, pattern="mdt"), Component(1 << 30, None, "hdd")))
    at.cluster.make_directory("/proj/large", on_mdt)
    at.cluster.make_file("/proj/large/file", 900 << 20)
    at.run(230)
    assert layout_of(at, "/sw/lib") == explain(HDD)
    undone = [e for e in at.journal.entries(Outcome.UNDONE) if e.kind == ActKind.MIGRATE]
    assert {e.id for e in undone} >= {e.id for e in moved}, "the job removes no file"
    assert {explain(at.filesystem.layout(e.place) or HDD) for e in undone} == {explain(HDD)}
    assert {case.state for case in at.daemon.store} <= {State.UNDONE, State.CLOSED}
