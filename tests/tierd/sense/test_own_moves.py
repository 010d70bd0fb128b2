"""Our own moves are not activity, whatever the job id is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from lustre.parameters import Roots, Tree
from tests.conftest import Unpack
from tierd.model import JobLoad, Window
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.own_moves import (
    BEFORE_SECONDS,
    FILE_BYTES,
    MAX_FILES,
    MIN_BYTES,
    PASSES,
    QUIET_SECONDS,
    REMEMBER_SECONDS,
    OwnJobs,
    OwnMoveFilter,
    nids_of_moves,
)
from tierd.sense.parameters import own_nids

MOVED, OTHER = Fid(2, 1), Fid(2, 2)


@dataclass
class World:
    nids: frozenset[str] = frozenset({"10.0.0.5@tcp"})
    time: float = 1000.0
    begun: frozenset[Fid] = frozenset()
    echo: OwnMoveFilter = field(init=False)

    def __post_init__(self) -> None:
        self.echo = OwnMoveFilter(("lfs.0",), lambda: self.nids, lambda: self.time,
                         lambda fid, since: fid in self.begun and since == self.time - REMEMBER_SECONDS)
        self.echo.moved(MOVED)

    def is_own(self, target: Fid = MOVED, job: str = "node17", uid: int | None = 0, nid: str = "10.0.0.5@tcp",
              kind: RecordType = RecordType.OPEN) -> bool:
        return self.echo(Record(1, kind, 1.0, target=target, uid=uid, nid=nid, job_id=job.encode()), job)


@pytest.fixture
def world() -> World:
    return World()


def test_by_the_job_tag(world: World) -> None:
    assert world.is_own(OTHER, job="lfs.0", uid=7, nid="other@tcp")


def test_a_layout_is_ours_only_where_we_moved_the_file(world: World) -> None:
    layout = RecordType.LAYOUT
    assert world.is_own(job="lfs.0", kind=layout)
    assert not world.is_own(OTHER, job="lfs.0", kind=layout)
    assert not world.is_own(job="lfs.0", kind=layout, nid="10.0.0.6@tcp")
    world.begun = frozenset({OTHER})
    assert world.is_own(OTHER, job="lfs.0", kind=layout)


def test_by_file_user_and_node_where_the_tag_says_nothing(world: World) -> None:
    assert world.is_own()
    assert world.is_own(kind=RecordType.LAYOUT)
    assert not world.is_own(OTHER)
    assert not world.is_own(uid=1001)
    assert not world.is_own(nid="10.0.0.6@tcp")


@pytest.mark.parametrize("kind", [RecordType.OPEN, RecordType.CLOSE, RecordType.LAYOUT], ids=lambda kind: kind.name)
def test_moves_on_the_nodes_of_movers_are_ours(world: World, kind: RecordType) -> None:
    here, mover = "10.0.0.5@tcp", "10.0.0.6@tcp"
    world.nids = frozenset(nids_of_moves({here}, [mover]))
    assert world.is_own(nid=mover, kind=kind)
    assert world.is_own(nid=here, kind=kind)
    assert not world.is_own(nid="10.0.0.7@tcp", kind=kind)
    world.nids = frozenset(nids_of_moves({here}, None))  # the NIDs of a mover are unknown: file and user have to do
    assert world.is_own(nid="10.0.0.7@tcp", kind=kind)
    assert not world.is_own(OTHER, nid=mover, kind=kind)


def test_what_no_move_does_is_never_an_echo(world: World) -> None:
    for kind in (RecordType.UNLINK, RecordType.RENAME, RecordType.CREATE, RecordType.TRUNCATE):
        assert not world.is_own(kind=kind)


def test_where_addresses_are_not_to_be_seen_file_and_user_have_to_do(world: World) -> None:
    world.nids = frozenset()
    assert world.is_own(nid="10.0.0.6@tcp")
    world.nids = frozenset({"10.0.0.5@tcp"})
    assert world.is_own(nid="")  # a record without one
    assert world.is_own(uid=None)


def test_ten_minutes_later_it_is_somebody_else(world: World) -> None:
    world.time += REMEMBER_SECONDS + 1
    assert not world.is_own()


def test_it_is_bounded(world: World) -> None:
    for number in range(MAX_FILES + 10):
        world.echo.moved(Fid(3, number))
    assert len(world.echo.files) == MAX_FILES


def test_the_table_leaves_them_out(world: World) -> None:
    table = ActivityTable(lambda fid: "/d/a", is_echo=world.echo)
    table.add([[Record(1, RecordType.OPEN, 1.0, target=MOVED, uid=0, nid="10.0.0.5@tcp", job_id=b"node17"),
               Record(2, RecordType.OPEN, 1.0, target=MOVED, uid=1001, nid="10.0.0.5@tcp", job_id=b"app.1001")]])
    assert table.of_job("node17", 0.0) == []
    assert len(table.of_job("app.1001", 0.0)) == 1


def test_addresses_of_a_recorded_node(capture: Unpack) -> None:
    root = capture("2.17.57/tree-idle")
    assert own_nids(Tree(Roots.of(root / "proc", root / "sys"))) >= {"0@lo"}


def test_none_on_a_node_without_lustre(tmp_path: Path) -> None:
    assert own_nids(Tree(Roots.of(tmp_path, tmp_path))) == frozenset()


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


def test_what_the_journal_does_not_know_of_is_somebody_elses() -> None:
    reported = OwnJobs(JOBS, Journal())(window(lfs0=100e6, ior0=500e6))
    assert reported.own_jobs == frozenset()
    assert reported.problem.startswith("another mover: lfs.0 read and wrote 100 MB in 5 s")


def test_what_we_moved_lately_is_ours() -> None:
    journal = Journal(10, 25_000_000)
    reported = OwnJobs(JOBS, journal)(window(lfs0=100e6))
    assert (reported.own_jobs, reported.problem) == (frozenset(JOBS), "")
    assert journal.requested == [1000.0 - BEFORE_SECONDS]


def test_beside_our_own_work_another_shows_by_more_than_ours_can_be() -> None:
    most = MIN_BYTES + PASSES * 1_000_000 + FILE_BYTES * 2
    work = OwnJobs(JOBS, Journal(2, 1_000_000))
    assert work(window(lfs0=most - 1, tierd0=1.0)).own_jobs == frozenset(JOBS)
    assert work(window(lfs0=most, tierd0=1.0)).own_jobs == frozenset()


def test_a_command_on_a_file_or_two_is_nobodys_move() -> None:
    journal = Journal()
    reported = OwnJobs(JOBS, journal)(window(lfs0=MIN_BYTES))
    assert (reported.own_jobs, reported.problem) == (frozenset(JOBS), "")
    assert journal.requested == []


def test_it_counts_as_gone_after_a_while_and_is_reported_in_the_same_words_until_then() -> None:
    work = OwnJobs(JOBS, Journal())
    first = work(window(lfs0=100e6))
    assert work(window(1005.0, lfs0=900e6)).problem == first.problem
    quiet = work(window(1010.0))
    assert (quiet.own_jobs, quiet.problem) == (frozenset(JOBS), first.problem)
    assert work(window(1004.0 + QUIET_SECONDS)).problem == first.problem
    assert work(window(1005.0 + QUIET_SECONDS)).problem == ""


def test_a_clock_that_went_back_does_not_keep_it() -> None:
    work = OwnJobs(JOBS, Journal())
    work(window(lfs0=100e6))
    assert work(window(500.0)).problem == ""
