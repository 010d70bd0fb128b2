"""Our own moves are not activity, whatever the job id is made of."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from lustre.parameters import Roots, Tree
from tests.conftest import Unpack
from tierd.model import JobLoad, Window
from tierd.sense import own_moves
from tierd.sense.own_moves import OwnJobs, OwnMoves, nids_of_moves
from tierd.sense.parameters import own_nids

MOVED, OTHER = Fid(2, 1), Fid(2, 2)


@dataclass
class World:
    nids: frozenset[str] = frozenset({"10.0.0.5@tcp"})
    time: float = 1000.0
    begun: frozenset[Fid] = frozenset()
    echo: OwnMoves = field(init=False)

    def __post_init__(self) -> None:
        self.echo = OwnMoves(("lfs.0",), lambda: self.nids, lambda: self.time,
                         lambda fid, since: fid in self.begun and since == self.time - own_moves.REMEMBER_SECONDS)
        self.echo.moved(MOVED)

    def is_own(self, target: Fid = MOVED, job: str = "node17", uid: int | None = 0, nid: str = "10.0.0.5@tcp",
              kind: RecordType = RecordType.OPEN) -> bool:
        return self.echo(Record(1, kind, 1.0, target=target, uid=uid, nid=nid, job_id=job.encode()), job)


@pytest.fixture
def world() -> World:
    return World()


HERE, ELSEWHERE = "10.0.0.5@tcp", "10.0.0.6@tcp"
LAYOUT = RecordType.LAYOUT


@pytest.mark.parametrize(("record", "is_own"), [
    ({"target": OTHER, "job": "lfs.0", "uid": 7, "nid": ELSEWHERE}, True),
    ({"job": "lfs.0", "kind": LAYOUT}, True),
    ({"target": OTHER, "job": "lfs.0", "kind": LAYOUT}, False),
    ({"job": "lfs.0", "kind": LAYOUT, "nid": ELSEWHERE}, False),
    ({}, True), ({"kind": LAYOUT}, True), ({"nid": ""}, True), ({"uid": None}, True),
    ({"target": OTHER}, False), ({"uid": 1001}, False), ({"nid": ELSEWHERE}, False),
    *(({"kind": kind}, False) for kind in (RecordType.UNLINK, RecordType.RENAME, RecordType.CREATE,
                                           RecordType.TRUNCATE)),
])
def test_a_record_is_an_own_move_by_job_or_by_file_user_and_node(world: World, record: dict[str, Any],
                                                                 is_own: bool) -> None:
    assert world.is_own(**record) is is_own


@pytest.mark.parametrize(("known", "record", "is_own"), [
    ({"begun": frozenset({OTHER})}, {"target": OTHER, "job": "lfs.0", "kind": LAYOUT}, True),
    ({"nids": frozenset()}, {"nid": ELSEWHERE}, True),
    *(({"nids": frozenset(nids_of_moves({HERE}, [ELSEWHERE]))}, {"nid": nid}, is_own)
      for nid, is_own in ((HERE, True), (ELSEWHERE, True), ("10.0.0.7@tcp", False))),
    ({"time": 1001.0 + own_moves.REMEMBER_SECONDS}, {}, False),
], ids=["before a restart", "no NIDs are known", "here", "mover", "another node", "ten minutes later"])
def test_own_moves_depend_on_what_is_known(world: World, known: dict[str, Any], record: dict[str, Any],
                                           is_own: bool) -> None:
    vars(world).update(known)
    assert world.is_own(**record) is is_own


def test_the_files_that_tierd_remembers_are_limited(world: World) -> None:
    for number in range(own_moves.MAX_FILES + 10):
        world.echo.moved(Fid(3, number))
    assert len(world.echo.files) == own_moves.MAX_FILES


def test_addresses_of_a_recorded_node(capture: Unpack) -> None:
    root = capture("2.17.57/tree-idle")
    assert own_nids(Tree(Roots.of(root / "proc", root / "sys"))) >= {"0@lo"}


JOBS = ("lfs.0", "tierd.0")


def window(start: float = 1000.0, **done: float) -> Window:
    """Five seconds; bytes by job, of which the last letter is the root's number."""
    loads = {("l-OST0000", job[:-1] + ".0"): JobLoad("l-OST0000", job[:-1] + ".0", write_bytes=size)
             for job, size in done.items()}
    return Window(start, start + 5, loads, {})


class Journal:
    def __init__(self, files: int = 0, size_bytes: int = 0) -> None:
        self.moved = files, size_bytes
        self.requested: list[float] = []

    def __call__(self, since: float) -> tuple[int, int]:
        self.requested.append(since)
        return self.moved


@pytest.mark.parametrize(("moved", "done", "asked"), [
    ((10, 25_000_000), 100e6, [1000.0 - own_moves.BEFORE_SECONDS]),
    ((0, 0), own_moves.MIN_BYTES, []),  # a command on a file or two
])
def test_io_of_moves_in_the_journal_and_little_io_is_no_other_mover(moved: tuple[int, int], done: float,
                                                                    asked: list[float]) -> None:
    journal = Journal(*moved)
    work = OwnJobs(JOBS, journal)
    assert (work(window(lfs0=done)), work.problem) == (frozenset(JOBS), "")
    assert journal.requested == asked


def test_another_mover_shows_by_more_io_than_own_moves_can_cause() -> None:
    most = own_moves.MIN_BYTES + own_moves.PASSES * 1_000_000 + own_moves.FILE_BYTES * 2
    work = OwnJobs(JOBS, Journal(2, 1_000_000))
    assert work(window(lfs0=most - 1, tierd0=1.0)) == frozenset(JOBS)
    assert work(window(lfs0=most, tierd0=1.0)) == frozenset()


def test_another_mover_is_reported_in_the_same_words_until_it_is_quiet_for_five_minutes() -> None:
    work = OwnJobs(JOBS, Journal())
    work(window(lfs0=100e6, ior0=500e6))
    first = work.problem
    assert first.startswith("another mover: lfs.0 read and wrote 100 MB in 5 s")
    for seen, jobs, problem in ((window(1005.0, lfs0=900e6), (), first), (window(1010.0), JOBS, first),
                                (window(1004.0 + own_moves.QUIET_SECONDS), JOBS, first),
                                (window(1005.0 + own_moves.QUIET_SECONDS), JOBS, "")):
        assert (work(seen), work.problem) == (frozenset(jobs), problem)
    work(window(2000.0, lfs0=100e6))
    work(window(500.0))
    assert work.problem == "", "the clock went back"
