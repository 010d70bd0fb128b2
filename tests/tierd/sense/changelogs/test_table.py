import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from lustre.nid import NONE as NID_OF_NOBODY
from tierd.model import MAX_CLIENTS, NamespaceLoad
from tierd.sense.changelogs.counts import CountTables
from tierd.sense.changelogs.files import FileTable, fid_words
from tierd.sense.changelogs.table import ActivityTable, Recent
from tierd.sense.changelogs.tallies import TallyLimits
from tierd.sense.paths import PathCache

DIRECTORY, OTHER = Fid(0x200000402, 4), Fid(0x200000402, 2)
PATHS = {DIRECTORY: "/proj/in", OTHER: "/proj/flow", Fid(0x200000402, 6): "/proj/flow/stream.dat"}


def resolver(paths: Mapping[Fid, str]) -> Callable[[Fid], str]:
    """The lookup of an MDT that knows these paths."""
    def resolve(fid: Fid) -> str:
        if fid not in paths:
            raise FileNotFoundError(str(fid))
        return paths[fid]

    return resolve


resolve = resolver(PATHS)


def record(kind: RecordType, target: int, time: float, job: bytes = b"m.2", parent: Fid = DIRECTORY, name: bytes = b"",
           source: Fid | None = None) -> Record:
    return Record(1, kind, time, target=Fid(0x200000403, target), parent=parent, name=name, job_id=job, source=source)


def lived(number: int, time: float = 10.0) -> list[Record]:
    """Changelog records of a small file, as in 2.17."""
    return [record(RecordType.CREATE, number, time, name=f"f{number}".encode()),
            record(RecordType.OPEN, number, time + 0.001),
            record(RecordType.CLOSE, number, time + 0.1, parent=Fid(0, 0))]


def filled(batches: Sequence[Sequence[Record]], **limits: Any) -> ActivityTable:
    table = ActivityTable(resolve, **limits)
    table.add(batches)
    return table


@pytest.mark.parametrize(("records", "seen"), [
    ([r for n in range(5) for r in lived(n)], [("/proj/in", 5, 0, 5, 0, [f"/proj/in/f{n}" for n in range(5)], [])]),
    ([record(RecordType.OPEN, 0, 10)._replace(target=Fid(0x200000402, 6))],
     [("/proj/flow", 0, 1, 0, 0, [], ["/proj/flow/stream.dat"])]),
    ([*lived(1), record(RecordType.UNLINK, 1, 20, name=b"f1"), *lived(2)[:2]], [("/proj/in", 2, 0, 1, 1, [], [])]),
    ([*lived(1), record(RecordType.RENAME, 99, 11, name=b"final", parent=OTHER, source=Fid(0x200000403, 1))],
     [("/proj/in", 1, 0, 1, 0, ["/proj/flow/final"], [])]),
    ([record(RecordType.CREATE, 1, 10, parent=Fid(9, 9), name=b"x")], [("[0x9:0x9:0x0]", 1, 0, 0, 0, [], [])]),
    ([record(RecordType.MKDIR, 50, 9, name=b"run7")._replace(target=Fid(7, 7)),
      record(RecordType.CREATE, 1, 10, parent=Fid(7, 7), name=b"x")],
     [("/proj/in/run7", 1, 0, 0, 0, ["/proj/in/run7/x"], [])]),
], ids=["small files", "an open names a directory in which the file, as recorded, does not lie",
        "unlinked and open files are no candidates", "a file renamed into place", "a directory without a path",
        "a directory that was made meanwhile"])
def test_files_are_counted_by_job_and_directory(records: list[Record], seen: list[object]) -> None:
    assert [(each.directory, each.creates, each.opens, each.closes, each.unlinks,
             [file.path for file in each.candidates], [file.path for file in each.existing_files])
            for each in filled([records]).of_job("m.2", 0)] == seen


def test_files_that_were_gone_when_first_seen_are_in_no_directory() -> None:
    table = ActivityTable(resolve)
    table.recent(0.0)
    table.add([[record(RecordType.OPEN, number, 10.0, parent=Fid(0, 0)) for number in range(60)], lived(99)])
    assert [activity.directory for activity in table.recent(60.0).directories] == ["/proj/in"]


def test_a_layout_record_without_a_job_is_a_file_that_grew() -> None:
    table = filled([[*lived(1)[:2], record(RecordType.LAYOUT, 1, 10.05, b"", parent=Fid(0, 0))]])
    assert table.of_job("m.2", 0)[0].outgrown == 1
    table.add([[record(RecordType.LAYOUT, 1, 12, b"lfs.0", parent=Fid(0, 0))]])
    assert table.of_job("m.2", 0)[0].outgrown == 1


def test_an_unlink_is_of_the_job_that_did_it() -> None:
    """Somebody removes the files of a job that has done nothing for long."""
    table = filled([lived(1)])
    table.add([[record(RecordType.UNLINK, 1, 500.0, b"rm.0", name=b"f1")._replace(nid="10.0.0.9@tcp")]])
    assert [(seen.job, seen.unlinks, seen.last_time, seen.clients) for job in ("m.2", "rm.0")
            for seen in table.of_job(job, 0)] == [("m.2", 0, 10.1, ()), ("rm.0", 1, 500.0, ("10.0.0.9@tcp",))]


@pytest.mark.parametrize("name", [b"a\nb", b"\xff\xfe", b"'; rm -rf /", "ü".encode(), b"\x1b[2J"])
def test_any_name_comes_back_as_the_same_bytes(name: bytes) -> None:
    table = filled([[record(RecordType.CREATE, 1, 10, name=name)]])
    (candidate,) = table.of_job("m.2", 0)[0].candidates
    assert candidate.path.encode("utf-8", "surrogateescape") == b"/proj/in/" + name


def test_files_that_the_table_dropped_are_in_no_directory() -> None:
    """A job that makes files for months and removes none: what is known of it must not grow."""
    table = filled([[r for n in range(5000) for r in lived(n)]], max_files=50)
    (seen,) = table.of_job("m.2", 0)
    assert (seen.creates, len(seen.candidates)) == (5000, 50)
    assert seen.candidates[-1].path == "/proj/in/f4999"
    (few,) = filled([[r for n in range(9) for r in lived(n)]], max_listed_files=4).of_job("m.2", 0)
    assert [file.path for file in few.candidates] == [f"/proj/in/f{n}" for n in range(5, 9)]


def test_the_counts_idle_for_longest_are_dropped_first() -> None:
    table = ActivityTable(resolve, max_counts=2)
    for number, (job, time) in enumerate([(b"a.1", 10.0), (b"b.1", 11.0), (b"a.1", 12.0), (b"c.1", 13.0)]):
        table.add([[record(RecordType.CREATE, number, time, job, name=b"x")]])
    assert [len(table.of_job(job, 0)) for job in ("a.1", "b.1", "c.1")] == [1, 0, 1]


def test_activity_counts_as_recent_for_two_to_four_minutes() -> None:
    table = ActivityTable(resolve)
    seen = []
    for now, files in ((0, 5), (60, 1), (121, 2), (242, 0), (363, 0), (0, 3)):  # at last the clock goes back
        table.mark(now)
        table.add([[r for n in range(files) for r in lived(1000 * now + n)]])
        seen += [activity.lately for activity in table.of_job("m.2", 0)]
    assert seen == [5, 6, 8, 2, 0, 3]


def test_a_file_that_a_rename_overwrote_is_gone() -> None:
    """Lustre writes no UNLNK for it: the target of the RENME is its FID."""
    table = ActivityTable(resolve)
    for number in range(1, 9):
        moved = record(RecordType.RENAME, number - 1, 11, name=b"state", source=Fid(0x200000403, number))
        table.add([[*lived(number), moved]])
    assert [(c.fid, c.path) for c in table.of_job("m.2", 0)[0].candidates] == [(Fid(0x200000403, 8), "/proj/in/state")]


def renamed(source: Fid, parent: Fid, old: bytes, new: bytes) -> Record:
    return Record(9, RecordType.RENAME, 20.0, parent=parent, name=new, source=source, source_parent=parent,
                  source_name=old, job_id=b"m.2")


PROJ, STRIPE = Fid(0x200000402, 1), Fid(0x240000402, 5)
ABOVE = {PROJ: "/proj", DIRECTORY: "/proj/in", STRIPE: "/proj/in"}


@pytest.mark.parametrize(("parent", "rename", "after"), [
    (DIRECTORY, renamed(PROJ, Fid(7, 7), b"proj", b"done"), "/done/in"),
    (STRIPE, renamed(DIRECTORY, PROJ, b"in", b"done"), "/proj/done")], ids=["above", "striped"])
def test_a_directory_is_renamed_that_no_record_named_before(parent: Fid, rename: Record, after: str) -> None:
    """One above the directory of the files; or one striped over MDTs, of which records of files name a stripe."""
    paths = dict(ABOVE) | {Fid(7, 7): "/"}
    table = ActivityTable(paths.__getitem__)
    table.add([[one._replace(parent=parent) for one in lived(1)]])
    paths |= {DIRECTORY: after, STRIPE: after, PROJ: after.rpartition("/")[0]}
    table.add([[rename], [one._replace(parent=parent) for one in lived(2)]])
    assert {seen.directory for seen in table.of_job("m.2", 0)} == {"/proj/in", after}
    table.add([[record(RecordType.OPEN, 1, 30.0, b"r.3", parent=parent)]])
    assert [(seen.directory, seen.opens) for seen in table.of_job("r.3", 0)] == [(after, 1)]


@pytest.mark.parametrize("size", [1, 9])
def test_two_directories_that_trade_their_names_keep_their_files(size: int) -> None:
    """When the first rename is read, all are done."""
    old, new = Fid(7, 8), Fid(7, 9)
    paths = {PROJ: "/proj", old: "/proj/live", new: "/proj/next"}
    table = ActivityTable(paths.__getitem__)
    table.add([[one._replace(parent=parent) for number, parent in ((1, old), (2, new)) for one in lived(number)]])
    paths |= {old: "/proj/next", new: "/proj/live"}
    renames = [renamed(old, PROJ, b"live", b"tmp"), renamed(new, PROJ, b"next", b"live"),
               renamed(old, PROJ, b"tmp", b"next")]
    table.add([renames[at:at + size] for at in range(0, len(renames), size)])
    assert {c.path for a in table.of_job("m.2", 0) for c in a.candidates} == {"/proj/next/f1", "/proj/live/f2"}
    table.add([[record(RecordType.OPEN, 1, 30.0, b"r.3", parent=old)]])
    assert [(seen.directory, seen.opens) for seen in table.of_job("r.3", 0)] == [("/proj/next", 1)]


def test_a_directory_is_renamed_after_the_one_above_it() -> None:
    """No record in between names either."""
    paths = dict(ABOVE) | {Fid(7, 7): "/"}
    table = ActivityTable(paths.__getitem__)
    table.add([lived(1)])
    paths |= {PROJ: "/old", DIRECTORY: "/old/in"}
    table.add([[renamed(PROJ, Fid(7, 7), b"proj", b"old")]])
    paths[DIRECTORY] = "/old/7"
    table.add([[renamed(DIRECTORY, PROJ, b"in", b"7")]])
    assert [c.path for c in table.of_job("m.2", 0)[0].candidates] == ["/old/7/f1"]


@pytest.mark.parametrize("size", [1, 9])
def test_a_directory_is_made_and_renamed_in_one_read(size: int) -> None:
    paths = dict(ABOVE) | {Fid(7, 7): "/proj/out"}
    table = ActivityTable(paths.__getitem__)
    records = [record(RecordType.MKDIR, 0, 9, parent=PROJ, name=b"out.tmp")._replace(target=Fid(7, 7)),
               record(RecordType.CREATE, 1, 10, parent=Fid(7, 7), name=b"f1"),
               renamed(Fid(7, 7), PROJ, b"out.tmp", b"out"),
               record(RecordType.CREATE, 2, 11, parent=Fid(7, 7), name=b"f2")]
    table.add([records[at:at + size] for at in range(0, len(records), size)])
    assert {c.path for a in table.of_job("m.2", 0) for c in a.candidates} == {"/proj/out/f1", "/proj/out/f2"}
    assert {a.directory: a.creates for a in table.of_job("m.2", 0)} == {"/proj/out.tmp": 1, "/proj/out": 1}


def test_the_record_of_a_new_directory_comes_after_its_rename_on_another_mdt() -> None:
    paths = dict(ABOVE) | {Fid(7, 7): "/proj/out"}
    table = ActivityTable(paths.__getitem__)
    table.add([[renamed(Fid(7, 7), PROJ, b"out.tmp", b"out")],
               [record(RecordType.MKDIR, 0, 9, parent=PROJ, name=b"out.tmp")._replace(target=Fid(7, 7)),
                record(RecordType.CREATE, 1, 10, parent=Fid(7, 7), name=b"f1")]])
    assert [a.directory for a in table.of_job("m.2", 0)] == ["/proj/out"]


def test_a_file_that_was_renamed_and_forgotten_is_found_by_its_present_name() -> None:
    paths = dict(ABOVE) | {Fid(0x200000403, 1): "/proj/in/old"}
    table = ActivityTable(paths.__getitem__, max_files=2)
    table.add([[record(RecordType.OPEN, 1, 10)]])
    paths[Fid(0x200000403, 1)] = "/proj/in/new"
    table.add([[record(RecordType.RENAME, 0, 11, name=b"new", source=Fid(0x200000403, 1))._replace(target=Fid(0, 0))],
               [one for number in (2, 3) for one in lived(number)], [record(RecordType.OPEN, 1, 20)]])
    assert [file.path for file in table.of_job("m.2", 0)[0].existing_files] == ["/proj/in/new"]


@pytest.mark.parametrize("is_reader", [False, True])
def test_a_path_that_an_unavailable_mdt_did_not_report_is_requested_again(is_reader: bool) -> None:
    is_away = True

    def ask(fid: Fid) -> str:
        if is_away:
            raise OSError(errno.ESHUTDOWN, "evicted")
        return resolve(fid)

    table = ActivityTable(ask, tallies=TallyLimits() if is_reader else None)
    table.mark(0.0)
    table.add([lived(1)])
    is_away = False
    if is_reader:
        table.tally()
    else:
        table.mark(121.0)
    table.add([lived(2, 130.0)])
    assert [seen.directory for seen in table.of_job("m.2", 100.0)] == ["/proj/in"]


def test_counts_of_a_job_are_its_activities_without_the_files() -> None:
    table = filled([[*lived(1), *lived(2, 20.0)[:2], record(RecordType.CREATE, 3, 5.0, parent=OTHER, name=b"x"),
                    record(RecordType.CREATE, 4, 5.0, parent=Fid(9, 9), name=b"y"), record(RecordType.OPEN, 4, 5.0)]])
    for since in (0.0, 6.0, 100.0):
        whole = table.of_job("m.2", since)
        assert len(whole) == {0.0: 3, 6.0: 2, 100.0: 2}[since]
        assert table.counts_of_job("m.2", since) == [replace(a, existing_files=(), candidates=()) for a in whole]


def test_counts_that_own_files_do_not_make_each_batch_compact_the_table() -> None:
    known = CountTables(max_files=100, max_counts=4, max_listed_files=10)
    place = known.counts.places["/d"]
    for number in range(64):
        row = known.files.rows_of(fid_words([Fid(0x200000403, 1 + number)]))
        known.files.put(row, known.counts.number(known.counts.jobs[f"j.{number}"], place), place, created=True)
        known.settle()
    assert known.compactions <= 4, "each time the table has doubled"


def test_a_table_that_has_lost_all_files_knows_none() -> None:
    table = FileTable()
    row = table.rows_of(keys := np.array([[7, 1]], np.uint64))
    table.put(row, 0, 0, created=True)
    table.present[row] = False
    table.compact()
    assert table.has(keys).tolist() == [False]
    assert table.rows_of(keys).tolist() == [0]


def test_a_directory_is_looked_up_once() -> None:
    requested: list[Fid] = []
    table = ActivityTable(lambda fid: requested.append(fid) or f"/d{fid.object_id}")
    for time in (10.0, 20.0):
        table.add([[record(RecordType.CREATE, n, time, parent=Fid(7, n % 9), name=b"x") for n in range(90)]])
    assert len(requested) == 9


def test_the_clients_of_a_job_in_a_directory_are_remembered() -> None:
    table = ActivityTable(resolve)
    made = [r._replace(nid=f"10.0.0.{number}@tcp") for number in (7, 8) for r in lived(number)]
    nobody = [record(RecordType.UNLINK, 9, 12)._replace(nid=NID_OF_NOBODY), record(RecordType.UNLINK, 10, 12)]
    table.add([[*made, *nobody, record(RecordType.UNLINK, 7, 13)._replace(nid="10.0.0.9@tcp")]])
    (seen,) = table.counts_of_job("m.2", 0)
    assert seen.clients == ("10.0.0.7@tcp", "10.0.0.8@tcp", "10.0.0.9@tcp")
    assert table.of_job("m.2", 0)[0].clients == seen.clients
    table.add([[record(RecordType.UNLINK, 50 + n, 14)._replace(nid=f"10.0.1.{n}@tcp") for n in range(20)]])
    assert len(table.of_job("m.2", 0)[0].clients) == MAX_CLIENTS


def test_clients_that_open_the_new_file_of_another_are_remembered_and_not_counted() -> None:
    table = filled([[record(kind, 7, time)._replace(nid=f"10.0.0.{client}@tcp") for kind, time, client in (
        (RecordType.CREATE, 10, 1), (RecordType.OPEN, 10, 1), (RecordType.OPEN, 11, 2), (RecordType.OPEN, 12, 3))]])
    (seen,) = table.of_job("m.2", 0)
    assert (seen.creates, seen.opens) == (1, 0)
    assert seen.clients == ("10.0.0.1@tcp", "10.0.0.2@tcp", "10.0.0.3@tcp")


A, B, C = (Fid(0x200000400, number) for number in (1, 2, 3))


def test_a_path_that_a_record_names_again_is_not_the_next_to_be_dropped() -> None:
    asked: list[Fid] = []
    paths = PathCache(lambda fid: asked.append(fid) or "/asked", size=2)
    paths.learn(A, "/a", 1.0)
    paths.learn(B, "/b", 1.0)
    paths.learn(A, "/a", 1.0)
    assert (paths(C), paths(A), asked) == ("/asked", "/a", [C])
    assert B not in paths.known


def made(table: ActivityTable, number: int, files: int, job: str = "m.2") -> None:
    table.add([[record(RecordType.CREATE, 1000 * number + each, float(number), job.encode()) for each in range(files)]])


def creates(recent: Recent) -> dict[str, int]:
    return {each.job: each.creates for each in recent.directories}


def test_recent_activity_is_what_was_counted_since_the_oldest_time_that_is_kept() -> None:
    table = ActivityTable(resolve)
    assert table.latest(0.0) == ((), 0.0)
    for minute in range(20):
        made(table, minute, 10)
        table.recent(60.0 * minute)
        assert table.of_job("m.2", 0.0)[0].creates_before == (0 if minute < 5 else 10 * max(1, minute - 9))
    made(table, 20, 7, "new.2")
    assert creates(table.recent(1145.0)) == {"m.2": 90, "new.2": 7}
    assert (table.recent(1145.0).seconds, table.latest(1150.0)) == (545.0, ((), 5.0))
    table.begin_again(["/proj/in"], 0.0)
    made(table, 21, 3)
    assert creates(table.recent(1155.0)) == {"m.2": 3}


def test_records_that_were_missed_are_not_recent_activity() -> None:
    """Those of an hour without tierd are read after the first facts were collected."""
    table = ActivityTable(resolve)
    table.recent(3600.0)
    table.mark(3600.0)
    made(table, 10, 5000)
    assert table.recent(3605.0) == ((), 0.0)
    made(table, 3606, 3)
    assert creates(table.recent(3610.0)) == {"m.2": 3}


def test_recent_activity_after_the_clock_was_set_back() -> None:
    table = ActivityTable(resolve)
    for time in (5000.0, 5100.0):
        table.recent(time)
    assert table.recent(1400.0) == ((), 0.0)
    made(table, 1, files=7)
    recent = table.recent(1460.0)
    assert (creates(recent), recent.seconds) == ({"m.2": 7}, 60.0)


@given(st.lists(st.integers(0, 20), min_size=2, max_size=9))
def test_recent_activity_counts_nothing_twice(steps: list[int]) -> None:
    table = ActivityTable(resolve)
    table.recent(0.0)
    for number, step in enumerate(steps, 1):
        made(table, number, step)
        assert sum(creates(table.recent(float(number))).values()) == sum(steps[:number])


def test_counts_that_were_dropped_and_added_again_begin_at_zero_though_numbers_change() -> None:
    table = ActivityTable(resolve, max_counts=5)
    made(table, 0, 10, "stays.1")
    table.recent(0.0)
    for number in range(1, 40):
        made(table, number, 1, f"j.{number % 7}")
        made(table, 100 + number, 1, "stays.1")
        recent = creates(table.recent(float(number)))
        assert recent.pop("stays.1") == number
        assert 0 < max(recent.values()) <= number // 7 + 1
    assert table.operations_of(["stays.1"])["stays.1"].creates == 49.0
    made(table, 200, 2, "stays.1")
    assert table.operations_of(["stays.1", "none"]) == {"stays.1": NamespaceLoad("stays.1", 2.0, 0.0, 2.0)}
