"""A table filled from the bytes of records is that filled from decoded ones, and many at once are one by one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lustre.changelog.record import Record, RecordType, some
from lustre.fid import Fid
from lustre.nid import NONE as NID_OF_NOBODY
from simulator.servers.changelog_bytes import encode
from tests.damaged import damage, damaged
from tests.lustre.changelog.test_properties import records as any_record
from tests.tierd.sense.changelogs.test_table import resolver
from tierd.model import MAX_CLIENTS, NamespaceLoad, Window
from tierd.sense.changelogs import roll_up
from tierd.sense.changelogs.packed import Records, packed_pieces
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.changelogs.tallies import TallyLimits

RECORDED = sorted((Path(__file__).parents[3] / "captures" / "2.17.57" / "changelog").glob("*.chardev.bin"))
TAG, MOVED = b"lfs.0", Fid(0x200000403, 1)
resolve = resolver({Fid(0x200000402, number): f"/proj/{number}" for number in range(3)})


class Echoes:
    """Records with a tag, or of one file, may be tierd's own; those of uid 0 are."""

    tags = frozenset({TAG.decode()})
    files: ClassVar = {MOVED: 0.0}

    def __call__(self, record: Record, job: str) -> bool:
        return record.uid == 0


def table(max_files: int, max_counts: int) -> ActivityTable:
    return ActivityTable(resolve, max_files, max_counts, max_listed_files=5, is_echo=Echoes())  # type: ignore[arg-type]


JOBS = ("cp.1", "cp.2", "cp.\ufffd", "", "own.1", TAG.decode(), "x" * 32)


def state(of: ActivityTable) -> list[object]:
    """What the table knows, without the paths of runs on shared files: a rename may have changed these paths."""
    of.note_shared(Window(0.0, 9.0, {}, {job: NamespaceLoad(job, opens=100.0) for job in JOBS}))
    return [[of.of_job(job, 0.0) for job in JOBS], of.operations_of(JOBS), of.places(),
            of.shared_files, [replace(run, path="") for run in of.shared_runs()],
            of.records_read, of.oldest_time,
            [of.other_mover_in(place, 0.0) for place in of.places()]]


def pieces(data: bytes, most: int) -> Iterator[list[Record]]:
    """The same records, decoded one by one."""
    at = 0
    while True:
        records, at = some(data, at, most)
        if not records:
            return
        yield records


def as_pieces(several: Iterator[Sequence[Record]]) -> tuple[list[tuple[object, ...]], str]:
    """What is known of each piece, and the error that ends them."""
    found: list[tuple[object, ...]] = []
    try:
        for each in map(Records.of, several):
            found.append((len(each), each.last_index, each.newest_time, each.oldest_time, list(each)))
    except ValueError as error:
        return found, str(error)
    return found, ""


def fill(one: ActivityTable, batches: Iterable[Sequence[Record]]) -> str:
    try:
        one.add(batches)
    except ValueError as error:
        return str(error)
    return ""


def same(several: Sequence[bytes], max_files: int = 9, max_counts: int = 9, most: int = 512) -> None:
    """Filling two tables with the same bytes gives the same tables."""
    quick, plain = table(max_files, max_counts), table(max_files, max_counts)
    for data in several:
        assert as_pieces(packed_pieces(data, most)) == as_pieces(pieces(data, most))
        assert fill(quick, packed_pieces(data, most)) == fill(plain, pieces(data, most))
        assert state(quick) == state(plain)
        for seen in [each for job in JOBS for each in plain.of_job(job, 0.0)]:
            assert min(seen.creates, seen.opens, seen.closes, seen.unlinks, seen.outgrown) >= 0


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


@settings(max_examples=150)
@given(st.lists(st.lists(work(), max_size=40), min_size=1, max_size=3), st.integers(1, 12), st.integers(1, 12),
       st.integers(1, 50))
def test_records_that_meet(several: list[list[Record]], max_files: int, max_counts: int, most: int) -> None:
    same([packed(each) for each in several], max_files, max_counts, most)


@example([Record(1, RecordType.RENAME, 0.0, uid=0, gid=0, nid="10.0.0.1@tcp", job_id=b"a")], 0, b"")
@settings(max_examples=50)
@given(st.lists(any_record(), max_size=6), st.integers(0, 3000), st.binary(max_size=90))
def test_any_records_cut_short_and_before_anything(several: list[Record], cut: int, rest: bytes) -> None:
    data = b"".join(map(encode, several))
    same([data, data[:cut], data + rest])


@settings(max_examples=80)
@given(st.sampled_from(RECORDED), st.integers(0, 1 << 20), st.lists(damage, max_size=3))
def test_recorded_records_and_damage(path: Path, first: int, several: list[tuple[int, bytes, int]]) -> None:
    data = path.read_bytes()[:20_000]
    for one in several:
        data = damaged(data, *one)
    same([data, data[first % (len(data) + 1):]], 20, 5)


@given(st.lists(st.lists(work(), max_size=40), min_size=1, max_size=3), st.integers(1, 50))
def test_the_tallies_of_a_reader(several: list[list[Record]], most: int) -> None:
    quick, plain = (ActivityTable(resolve, tallies=TallyLimits(max_files_each=3)) for _ in range(2))
    for records in several:
        data = packed(records)
        fill(quick, packed_pieces(data, most))
        fill(plain, pieces(data, most))
        ours, expected = (each.replaced(removed=tuple(sorted(each.removed))) for each in (quick.tally(), plain.tally()))
        assert repr(ours) == repr(expected)


@st.composite
def life(draw: st.DrawFn, number: int) -> list[Record]:
    """Records of a file from its creation, or later, up to its end, or before."""
    first = Record(1, RecordType.CREATE, draw(st.integers(0, 9)), target=Fid(0x200000403, number),
                   parent=Fid(0x200000402, draw(st.integers(0, 4))), name=b"f%d" % number, job_id=b"cp.1", uid=1, gid=0,
                   nid="10.0.0.1@tcp")
    kinds = draw(st.lists(st.sampled_from((RecordType.OPEN, RecordType.CLOSE, RecordType.OPEN, RecordType.CLOSE,
                                           RecordType.LAYOUT, RecordType.RENAME)), max_size=12))
    found = [first]
    for kind in kinds:
        one = found[-1]._replace(type=kind, time=found[-1].time + draw(st.integers(0, 3)), job_id=draw(
            st.sampled_from((b"cp.1", b"cp.1", b"cp.2", b"", TAG))), open_mode=draw(st.sampled_from((1, 2))))
        found.append(one._replace(source=one.target, name=draw(st.sampled_from((b"g", b"h"))))
                     if kind is RecordType.RENAME else one._replace(source=None))
    end = [found[-1]._replace(type=RecordType.UNLINK, source=None)] if draw(st.booleans()) else []
    return [*found[draw(st.integers(0, 1)):], *end]


@st.composite
def lives(draw: st.DrawFn) -> list[Record]:
    """The records of several files, those of each in their order."""
    each = [draw(life(number)) for number in range(1, draw(st.integers(2, 7)))]
    found = []
    while left := [one for one in each if one]:
        found.append(draw(st.sampled_from(left)).pop(0))
    return found


def in_order(told: object) -> object:
    """The same without the order of parts."""
    if isinstance(told, dict):
        return sorted((key, in_order(value)) for key, value in told.items())
    return sorted(map(repr, told)) if isinstance(told, list) else told


@settings(max_examples=80)
@given(lives(), st.integers(2, 60))
def test_many_records_at_once_and_one_by_one(records: list[Record], most: int) -> None:
    data, (quick, plain) = packed(records), (table(99, 99) for _ in range(2))
    fill(quick, packed_pieces(data, most))
    fill(plain, packed_pieces(data, 1))
    ours, expected = ([*map(in_order, state(each)[2:7]), *({
        (seen.job, seen.directory): (replace(seen, candidates=(), existing_files=(), clients=()), {*seen.candidates},
                                     {*seen.existing_files}, {*seen.clients})
        for job in JOBS for seen in each.of_job(job, 0.0)},)] for each in (quick, plain))
    assert ours == expected


def lived(number: int, job: bytes = b"m.2", time: float = 10.0) -> list[Record]:
    one = Record(1, RecordType.CREATE, time, target=Fid(0x200000403, number), parent=Fid(0x200000402, 1),
                 name=b"f%d" % number, job_id=job, nid="10.0.0.1@tcp")
    return [one, one._replace(type=RecordType.OPEN, open_mode=2), one._replace(type=RecordType.CLOSE, time=time + 1),
            one._replace(type=RecordType.OPEN, open_mode=2), one._replace(type=RecordType.CLOSE, time=time + 2),
            one._replace(type=RecordType.UNLINK, time=time + 3)]


@pytest.mark.parametrize("packs", [True, False])
def test_a_close_by_a_client_thread_does_not_show_the_job_at_work(packs: bool) -> None:
    """It may come when tierd moves the file, long after the job has ended."""
    known = ActivityTable(resolve)
    known.add([[*lived(7), *lived(8, b"ldlm_bl.0", 5.0)]])
    left_open = lived(9, time=20.0)[:2]
    late = [*left_open, left_open[1]._replace(type=RecordType.CLOSE, job_id=b"ldlm_bl.0", time=90.0)]
    known.add(packed_pieces(packed(late)) if packs else [late])
    assert known.last_record(["m.2"]) == 20.0
    assert known.works_in(["m.2"], "/proj/1", 15.0, counting_open=False)
    assert not known.works_in(["m.2"], "/proj/1", 25.0, counting_open=False)
    assert known.of_job("m.2", 80.0), "it was in use then"


def test_bytes_behind_job_ids_and_nids_take_no_memory_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """An MDT thread writes each record into the same memory: what is behind a short job id is of one before."""
    made = list[roll_up.Interned]()

    class Noted(roll_up.Interned):
        def __init__(self, words: int, decode: Callable[[bytes], str]) -> None:
            super().__init__(words, decode)
            made.append(self)

    monkeypatch.setattr(roll_up, "Interned", Noted)
    monkeypatch.setattr(roll_up, "MOST_KEYS", 20)
    filled = table(max_files=9, max_counts=9)
    for number in range(100):
        data = bytearray(packed(each._replace(uid=1, nid="10.0.0.1@tcp") for each in lived(7)[:1]))
        data[72:76] = data[140:144] = number.to_bytes(4, "little")
        filled.add(packed_pieces(bytes(data)))
    assert max(len(each.keys) for each in made) <= 21
    assert [(seen.creates, seen.clients) for seen in filled.of_job("m.2", 0.0)] == [(100, ("10.0.0.1@tcp",))]
