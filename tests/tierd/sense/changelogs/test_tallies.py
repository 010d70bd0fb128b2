"""A reader's tallies give the leader the same activity as the records themselves; the limits bound them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lustre.changelog.record import NO_FID, Record, RecordType
from lustre.fid import Fid
from tests.tierd.sense.changelogs.test_table import resolver
from tierd.model import NamespaceLoad, Window
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.changelogs.tallies import Tally, TallyContent, TallyLimits
from tierd.sense.own_moves import OwnMoves

DIRECTORIES = {Fid(0x200000402, number): f"/proj/d{number}" for number in range(4)}
FILES = [Fid(0x200000403, number) for number in range(20)]
EXISTING = {Fid(0x200000404, number): f"/proj/d{number % 4}/old{number}" for number in range(3)}
JOBS = (b"a.1", b"b.2", b"lfs.0", b"")
resolve = resolver(DIRECTORIES | EXISTING)


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    """Records as Lustre writes them: a FID is never used again, and after its removal only a late CLOSE may name it."""
    kinds = (RecordType.CREATE, RecordType.CREATE, RecordType.OPEN, RecordType.OPEN, RecordType.CLOSE, RecordType.CLOSE,
             RecordType.UNLINK, RecordType.RENAME, RecordType.LAYOUT, RecordType.MKDIR, RecordType.SETATTR)
    made: list[Record] = []
    new, alive = list(FILES), list(EXISTING)
    gone: list[Fid] = []
    for index in range(draw(st.integers(1, 60))):
        kind = draw(st.sampled_from(kinds))
        if kind is RecordType.CREATE and new:
            target = new.pop()
            alive.append(target)
        elif kind is RecordType.CLOSE and gone and draw(st.booleans()):
            target = gone[-1]
        elif not alive or kind is RecordType.CREATE:
            continue
        else:
            target = draw(st.sampled_from(alive))
            if kind is RecordType.UNLINK:
                alive.remove(target)
                gone.append(target)
        if kind is RecordType.RENAME and draw(st.booleans()):
            target = draw(st.sampled_from([*DIRECTORIES]))
        made.append(Record(
            index + 1, kind, 1000.0 + index, target=NO_FID if kind is RecordType.RENAME else target,
            parent=draw(st.sampled_from([*DIRECTORIES])), name=f"f{index % 5}".encode(), job_id=draw(
                st.sampled_from(JOBS)), source=target if kind is RecordType.RENAME else None, uid=0,
            nid=draw(st.sampled_from(("", "10.0.0.1@tcp", "10.0.0.2@tcp")))))
    return made


def seen(table: ActivityTable) -> tuple[object, ...]:
    jobs = [job.decode() for job in JOBS]
    table.note_shared(Window(0.0, 9.0, {}, {job: NamespaceLoad(job, opens=100.0) for job in jobs}))
    return ([table.of_job(job, 0.0) for job in jobs], [table.counts_of_job(job, 0.0) for job in jobs],
            table.shared_files,
            [table.other_mover_in(directory, 0.0) for directory in DIRECTORIES.values()])


def tally_of(content: TallyContent, count: int, begun: bool = False, mdt: str = "MDT0000") -> Tally:
    return Tally(mdt, 0, count, count, "r1", 1, 0, begun, True, 1000.0, 2000.0, content=content)


@settings(max_examples=150)
@given(records(), st.sets(st.integers(0, 60), max_size=8))
def test_tallies_give_the_same_activity_as_the_records(changes, ends) -> None:
    own = ("lfs.0",)
    direct = ActivityTable(resolve, is_echo=OwnMoves(own))
    reader = ActivityTable(resolve, is_echo=OwnMoves(own), tallies=TallyLimits())
    leader = ActivityTable(resolve, is_echo=OwnMoves(own))
    window: list[Record] = []
    for number, record in enumerate(changes):
        window.append(record)
        if number in ends or number == len(changes) - 1:
            direct.add([window])
            reader.add([window])
            leader.add([tally_of(reader.tally(), len(window))])
            for mine, expected in zip(seen(leader), seen(direct), strict=True):
                assert mine == expected
            window = []


def file_life(number: int, job: bytes = b"a.1", directory: int = 0) -> list[Record]:
    fid, parent = Fid(0x200000405, number), Fid(0x200000402, directory)
    return [Record(1, RecordType.CREATE, 1000.0 + number, target=fid, parent=parent, name=b"x%d" % number, job_id=job),
            Record(2, RecordType.OPEN, 1000.1 + number, target=fid, parent=parent, job_id=job),
            Record(3, RecordType.CLOSE, 1000.2 + number, target=fid, job_id=job)]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200), st.integers(1, 40), st.integers(1, 3), st.integers(1, 20))
def test_a_tally_is_bounded_and_no_count_is_lost(directories, window, most_directories, most_files) -> None:
    limits = TallyLimits(most_directories, 4, most_files)
    reader = ActivityTable(resolve, tallies=limits)
    leader, direct = ActivityTable(resolve), ActivityTable(resolve)
    lives = [file_life(number, b"a.1", directory) for number, directory in enumerate(directories)]
    for begin in range(0, len(lives), window):
        batch = [record for life in lives[begin:begin + window] for record in life]
        reader.add([batch])
        direct.add([batch])
        content = reader.tally()
        assert len(content.files) <= most_files
        assert len(content.directories) <= most_directories + most_files
        leader.add([tally_of(content, len(batch))])
    for _ in range(4):  # what waits is part of the next tallies
        leader.add([tally_of(reader.tally(), 0)])
    assert leader.counts_of_job("a.1", 0.0) == direct.counts_of_job("a.1", 0.0)
    for mine in leader.of_job("a.1", 0.0):
        (every,) = [each for each in direct.of_job("a.1", 0.0) if each.directory == mine.directory]
        assert {file.fid for file in mine.candidates} <= {file.fid for file in every.candidates}
    assert sum(len(mine.candidates) for mine in leader.of_job("a.1", 0.0)) <= most_files


def test_the_sample_of_a_directory_is_random() -> None:
    reader = ActivityTable(resolve, tallies=TallyLimits(max_files_each=50))
    leader = ActivityTable(resolve)
    for begin in range(0, 2000, 100):
        reader.add([[record for number in range(begin, begin + 100) for record in file_life(number)]])
        leader.add([tally_of(reader.tally(), 300)])
    (activity,) = leader.of_job("a.1", 0.0)
    numbers = [file.fid.object_id for file in activity.candidates]
    assert len(numbers) == 50
    assert 700 < sum(numbers) / 50 < 1300


def test_counts_of_the_last_tally_are_dropped_and_the_table_is_compacted() -> None:
    reader = ActivityTable(lambda fid: f"/d{fid.object_id}", max_counts=4, tallies=TallyLimits())

    def records_in(kind: RecordType, places: range) -> list[Record]:
        return [Record(1, kind, 100.0 + place, target=Fid(0x200000403, place), parent=Fid(0x200000402, place),
                       name=b"f", job_id=b"a.1") for place in places]

    reader.add([records_in(RecordType.CREATE, range(8))])
    assert len(reader.tally().files) == 4
    reader.add([records_in(RecordType.CREATE, range(8, 40)) + records_in(RecordType.UNLINK, range(40))])
    assert {row.directory for row in reader.tally().directories} == {b"/d%d" % place for place in range(36, 40)}


def test_a_new_reader_makes_the_state_of_its_files_unknown_and_keeps_the_counts() -> None:
    first, second = (ActivityTable(resolve, tallies=TallyLimits()) for _ in range(2))
    leader = ActivityTable(resolve)
    first.add([file_life(1)[:2]])
    leader.add([tally_of(first.tally(), 2)])
    second.add([[*file_life(1)[2:], *file_life(2)]])
    leader.add([tally_of(second.tally(), 4, begun=True)])
    (activity,) = leader.of_job("a.1", 0.0)
    assert (activity.creates, activity.closes) == (2, 1)
    assert [file.path for file in activity.candidates] == ["/proj/d0/x2"]


def test_renames_of_directories_reach_the_other_readers() -> None:
    reader = ActivityTable(resolve, tallies=TallyLimits())
    reader.add([[Record(1, RecordType.RENAME, 1000.0, parent=Fid(0x200000402, 1), source=Fid(0x200000402, 0))]])
    assert [reader.tally().renamed, reader.tally().renamed] == [True, False]
    paths = dict(DIRECTORIES)
    other = ActivityTable(lambda fid: paths[fid], tallies=TallyLimits())
    other.add([file_life(1)])
    paths[Fid(0x200000402, 0)] = "/proj/moved"
    other.add([file_life(2)])
    other.forget_paths(1010.0)
    made = Record(9, RecordType.MKDIR, 1001.0, target=Fid(0x200000402, 0), parent=Fid(0x200000402, 1), name=b"d0")
    other.add([[made], file_life(3)])
    assert {row.directory: row.creates for row in other.tally().directories} == {b"/proj/d0": 2, b"/proj/moved": 1}


def test_the_leader_learns_where_files_are_after_the_rename_of_a_directory() -> None:
    paths = dict(DIRECTORIES)
    reader, leader = ActivityTable(lambda fid: paths[fid], tallies=TallyLimits()), ActivityTable(resolve)
    reader.add([file_life(1)])
    leader.add([tally_of(reader.tally(), 3)])
    paths |= {Fid(0x200000402, 0): "/proj/moved", Fid(0x200000402, 9): "/proj"}
    reader.add([[Record(4, RecordType.RENAME, 1000.0, parent=Fid(0x200000402, 9), name=b"moved",
                        source=Fid(0x200000402, 0), source_name=b"d0", source_parent=Fid(0x200000402, 9))]])
    leader.add([tally_of(reader.tally(), 4)])
    assert [file.path for file in leader.of_job("a.1", 0.0)[0].candidates] == ["/proj/moved/x1"]


def test_layout_changes_reach_the_leader_which_knows_its_own() -> None:
    reader = ActivityTable(resolve, tallies=TallyLimits())
    reader.add([[Record(number, RecordType.LAYOUT, 1000.0 + number, target=fid, job_id=b"mv.0", uid=0)
                for number, fid in enumerate(EXISTING)] * 2])
    moves = reader.tally().moves
    assert [(move.job, move.directory) for move in moves[:1]] == [("mv.0", b"/proj/d0")]

    class Ours(OwnMoves):
        def __call__(self, record: Record, job: str) -> bool:
            return record.target in EXISTING and job == "mv.0"

    for echo, found in ((OwnMoves(()), "mv.0"), (Ours(("mv.0",)), "")):
        leader = ActivityTable(resolve, is_echo=echo)
        for _ in range(2):
            leader.add([tally_of(TallyContent(moves=moves), 6)])
        assert leader.other_mover_in("/proj/d0", 0.0) == found
