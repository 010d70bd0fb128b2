"""The table filled from bytes in C is the table filled record by record: any records, damage, echoes, full tables."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustre.changelog.decode import AVAILABLE as AVAILABLE_MEASURE
from lustre.changelog.decode import packed_pieces, pieces
from lustre.changelog.encode import encode
from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from lustre.nid import NONE as NID_OF_NOBODY
from lustre.nid import nid_text
from tests.damaged import damage, damaged
from tests.lustre.changelog.test_properties import records as any_record
from tierd.model import MAX_CLIENTS
from tierd.sense.changelogs.counts import DirectoryCounts, File
from tierd.sense.changelogs.roll_up import AVAILABLE, WRITE_MODES, JobCounts
from tierd.sense.changelogs.table import ActivityTable, Batches

_roll_up = pytest.importorskip("tierd.sense.changelogs._roll_up",
                               reason="the module in C was not built: no compiler, or no Python.h")

RECORDED = sorted((Path(__file__).parents[3] / "captures" / "2.17.57" / "changelog").glob("*.chardev.bin"))
CLASSES = JobCounts, DirectoryCounts, File, Fid
REST = nid_text, NID_OF_NOBODY, MAX_CLIENTS, WRITE_MODES
TAG, MOVED = b"lfs.0", Fid(0x200000403, 1)
PATHS = {Fid(0x200000402, number): f"/proj/{number}" for number in range(3)}


def test_a_module_that_was_built_is_used() -> None:
    """Its fields of classes are those of these classes. Otherwise tierd adds records in Python, without an error."""
    assert AVAILABLE
    assert AVAILABLE_MEASURE


class Echoes:
    """Records with a tag, or of one file, may be tierd's own; those of uid 0 are."""

    tags = frozenset({TAG.decode()})
    files: ClassVar = {MOVED: 0.0}

    def __call__(self, record: Record, job: str) -> bool:
        return record.uid == 0


def resolve(fid: Fid) -> str:
    try:
        return PATHS[fid]
    except KeyError:
        raise FileNotFoundError(str(fid)) from None


def table(max_files: int, max_counts: int) -> ActivityTable:
    return ActivityTable(resolve, ("own.1",), max_files, max_counts, max_listed_files=5, is_echo=Echoes())


def state(of: ActivityTable) -> list[object]:
    """All that a table knows, with the types of numbers."""
    known = of._known
    places = {id(counts): key for key, counts in known.by_job_and_directory.items()}
    return [
        [(fid, type(fid), places.get(id(file.counts)), file.counts.job, file.counts.directory, *(
            repr(getattr(file, name)) for name in File.__slots__ if name != "counts"))
         for fid, file in known.files.items()],
        [(key, *(repr(getattr(counts, name)) for name in DirectoryCounts.__slots__))
         for key, counts in known.by_job_and_directory.items()],
        known.directories, of._records.closes, of.records_read, of.oldest_time, of._movers._moves,
        dict(of._path._paths), list(of._records._jobs.by_id),
    ]


def fill(one: ActivityTable, batches: Iterable[Sequence[Record]]) -> str:
    try:
        one.add(Batches(batches))
    except ValueError as error:
        return str(error)
    return ""


def same(several: Sequence[bytes], max_files: int = 9, max_counts: int = 9, most: int = 512) -> None:
    """Filling two tables with the same bytes gives the same tables."""
    quick, plain = table(max_files, max_counts), table(max_files, max_counts)
    for data in several:
        assert fill(quick, packed_pieces(data, most)) == fill(plain, pieces(data, most))
        assert state(quick) == state(plain)


files = st.integers(1, 12).map(lambda number: Fid(0x200000403, number))
directories = st.integers(0, 4).map(lambda number: Fid(0x200000402, number)) | st.just(Fid(0, 0))
common = st.sampled_from((RecordType.CREATE, RecordType.CREATE, RecordType.OPEN, RecordType.CLOSE, RecordType.UNLINK,
                          RecordType.RENAME))


@st.composite
def work(draw: st.DrawFn) -> Record:
    """A record of a few jobs, directories and files, so that records meet."""
    kind = draw(common | common | st.sampled_from(RecordType))
    source = draw(files) if kind is RecordType.RENAME else None
    parent = draw(directories)
    nanosecond = draw(st.sampled_from((0, 5, 500_000_000)))
    return Record(
        draw(st.integers(1, 99)), kind, draw(st.integers(0, 40)) + nanosecond / 1e9, target=draw(files), parent=parent,
        name=draw(st.sampled_from((b"", b"f1", b"f\xff"))), source=source, source_parent=source and parent,
        job_id=draw(st.sampled_from((b"", b"cp.1", b"cp.2", b"cp.\xff", TAG, b"own.1", b"x" * 32))),
        uid=draw(st.sampled_from((None, 0, 7))), gid=0,
        nid=draw(st.sampled_from(("", NID_OF_NOBODY, *(f"10.0.0.{n}@tcp" for n in range(MAX_CLIENTS + 2))))),
        open_mode=draw(st.sampled_from((None, 1, 2, 0o1000))), nanosecond=nanosecond)


def packed(records: Iterable[Record]) -> bytes:
    return b"".join(encode(each._replace(gid=0 if each.uid is not None else None)) for each in records)


@settings(max_examples=600)
@given(st.lists(st.lists(work(), max_size=40), min_size=1, max_size=3), st.integers(1, 12), st.integers(1, 12),
       st.integers(1, 50))
def test_records_that_meet(several: list[list[Record]], max_files: int, max_counts: int, most: int) -> None:
    same([packed(each) for each in several], max_files, max_counts, most)


@settings(max_examples=100)
@given(st.lists(any_record(), max_size=6), st.integers(0, 3000), st.binary(max_size=90))
def test_any_records_cut_short_and_before_anything(several: list[Record], cut: int, rest: bytes) -> None:
    data = b"".join(map(encode, several))
    same([data, data[:cut], data + rest])


@settings(max_examples=300)
@given(st.sampled_from(RECORDED), st.integers(0, 1 << 20), st.lists(damage, max_size=3))
def test_recorded_records_and_damage(path: Path, first: int, several: list[tuple[int, bytes, int]]) -> None:
    data = path.read_bytes()[:20_000]
    for one in several:
        data = damaged(data, *one)
    same([data, data[first % (len(data) + 1):]], 20, 5)


@settings(max_examples=200)
@given(st.lists(work(), min_size=1, max_size=12), st.lists(damage, min_size=1, max_size=4))
def test_damaged_records_that_meet(several: list[Record], damages: list[tuple[int, bytes, int]]) -> None:
    data = whole = packed(several)
    for one in damages:
        data = damaged(data, *one)
    same([whole, data, whole])


def lived(number: int, job: bytes = b"m.2", time: float = 10.0) -> list[Record]:
    one = Record(1, RecordType.CREATE, time, target=Fid(0x200000403, number), parent=Fid(0x200000402, 1),
                 name=b"f%d" % number, job_id=job, nid="10.0.0.1@tcp")
    return [one, one._replace(type=RecordType.OPEN, open_mode=2), one._replace(type=RecordType.CLOSE, time=time + 1),
            one._replace(type=RecordType.OPEN, open_mode=2), one._replace(type=RecordType.CLOSE, time=time + 2),
            one._replace(type=RecordType.UNLINK, time=time + 3)]


def test_files_of_a_known_job_in_a_known_directory_need_no_python() -> None:
    """One record of each sort makes the job, the directory and the client known."""
    known = ActivityTable(resolve)
    known.add(lived(7))
    data = packed(each for number in range(8, 20) for each in lived(number, time=20.0))
    assert known._records.add_packed(data, 0, len(data)) == (len(data), 6 * 12)
    (seen,) = known.of_job("m.2", 0.0)
    assert (seen.creates, seen.opens, seen.write_opens, seen.closes, seen.unlinks, seen.last_time) == (
        13, 13, 13, 26, 13, 23.0)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_close_by_a_client_thread_does_not_show_the_job_at_work(compiled: bool) -> None:
    """It may come when tierd moves the file, long after the job has ended."""
    known = ActivityTable(resolve)
    known.add([*lived(7), *lived(8, b"ldlm_bl.0", 5.0)])
    left_open = lived(9, time=20.0)[:2]
    late = [*left_open, left_open[1]._replace(type=RecordType.CLOSE, job_id=b"ldlm_bl.0", time=90.0)]
    if compiled:
        data = packed(late)
        assert known._records.add_packed(data, 0, len(data)) == (len(data), 3)
    else:
        known.add(late)
    assert known.last_record(["m.2"]) == 20.0
    assert known.works_in(["m.2"], "/proj/1", 15.0, counting_open=False)
    assert not known.works_in(["m.2"], "/proj/1", 25.0, counting_open=False)
    assert known.of_job("m.2", 80.0), "it was in use then"


@pytest.mark.parametrize("change", [
    {"job_id": b"new.1"}, {"parent": Fid(0x200000402, 2)}, {"nid": "10.0.0.2@tcp"}, {"type": RecordType.MKDIR},
    {"type": RecordType.LAYOUT}, {"type": RecordType.RENAME}, {"source": Fid(1, 2), "source_parent": Fid(1, 1)},
])  # fmt: skip
def test_a_record_that_needs_python_is_left(change: dict[str, object]) -> None:
    known = ActivityTable(resolve)
    known.add(lived(7))
    before = state(known)
    data = packed([lived(8)[0]._replace(**change)])
    assert known._records.add_packed(data, 0, len(data)) == (0, 0)
    assert state(known) == before


def test_a_directory_that_may_have_another_path_is_left_to_python() -> None:
    paths = {Fid(0x200000402, 1): "/proj/1"}
    known = ActivityTable(paths.__getitem__)
    known.add(lived(7))
    paths[Fid(0x200000402, 1)] = "/proj/renamed"
    known.forget_paths()
    data = packed(lived(8)[:1])
    assert known._records.add_packed(data, 0, len(data)) == (0, 0)
    known.add(Batches(packed_pieces(data)))
    assert {seen.directory: seen.creates for seen in known.of_job("m.2", 0.0)} == {"/proj/1": 1, "/proj/renamed": 1}


@pytest.mark.parametrize("kind", [RecordType.OPEN, RecordType.CLOSE, RecordType.UNLINK])
def test_a_file_that_was_renamed_into_another_directory_is_left_to_python(kind: RecordType) -> None:
    known = ActivityTable(resolve)
    created, *_ = lived(7)
    other = created._replace(type=RecordType.RENAME, parent=Fid(0x200000402, 2), source=created.target,
                             source_parent=created.parent)
    known.add([created, other])
    data = packed([created._replace(type=kind)])
    assert known._records.add_packed(data, 0, len(data)) == (0, 0)


def test_the_same_records_again_and_again_leave_nothing_behind() -> None:
    """No object is lost, and no count of references grows, whether records end in C, in Python or in an error."""
    known = table(6, 6)
    several = [each for number in range(30) for each in lived(number % 9, b"m.%d" % (number % 3))[:3 + number % 4]]
    data = packed([*several, *(each._replace(job_id=TAG, uid=0) for each in lived(3)), *lived(1, b"own.1")]) + b"x" * 70

    def go() -> tuple[int, ...]:
        for _ in range(40):
            fill(known, packed_pieces(data, 20))
        gc.collect()
        return (sys.getallocatedblocks(), *(sys.getrefcount(each) for each in (
            None, True, File, DirectoryCounts, Fid, "10.0.0.1@tcp", *known._known.by_job_and_directory.values())))

    go()
    before = go()
    after = go()
    assert all(abs(now - then) <= 20 for now, then in zip(after, before, strict=True)), (before, after)


class Other:
    """Not a class of the table."""

    __slots__ = ("name", "places", "tagged")


@pytest.mark.parametrize("wrong", [
    (Other(), *CLASSES[1:], *REST), (int, *CLASSES[1:], *REST), (CLASSES[0], int, *CLASSES[2:], *REST),
    (*CLASSES[:2], int, Fid, *REST), (*CLASSES[:2], DirectoryCounts, Fid, *REST), (*CLASSES[:3], str, *REST),
    (*CLASSES, *REST[:3]),
])  # fmt: skip
def test_other_classes_are_refused(wrong: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        _roll_up.prepare(*wrong)  # type: ignore[arg-type, call-arg]


GOOD = (_roll_up.prepare(*CLASSES, *REST), b"", 0, 0, {}, {}, {}, None, 9, True)


@pytest.mark.parametrize("wrong", [
    (None, *GOOD[1:]), (GOOD[0], "", *GOOD[2:]), (*GOOD[:2], "", *GOOD[3:]), (*GOOD[:4], [], *GOOD[5:]),
    (*GOOD[:5], [], *GOOD[6:]), GOOD[:9],
])  # fmt: skip
def test_what_is_no_call(wrong: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        _roll_up.add(*wrong)  # type: ignore[arg-type, call-arg]


@pytest.mark.parametrize(("at", "end"), [(-1, 2), (2, 1), (0, 5)])
def test_bytes_outside_the_data(at: int, end: int) -> None:
    with pytest.raises(ValueError, match="in the data"):
        _roll_up.add(GOOD[0], b"1234", at, end, *GOOD[4:])  # type: ignore[arg-type]
