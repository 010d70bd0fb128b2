"""The leader's side: each record counts once, in order, whatever arrives; what is missing is asked for or reported."""

import errno
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.sense.clocks import SettableClock
from tierd.sense.changelogs.follow import ChangelogError, MissingRecordsError
from tierd.sense.changelogs.recording import RecordingCheck
from tierd.sense.changelogs.tallies import Tally, TallyContent
from tierd.sense.changelogs.tally_source import Position, ReaderState, ReceivedTally, TallyOutcome, TallySource
from tierd.sense.freshness import CheckedRecords
from tierd.sense.readings import ChangelogState

MDT = "MDT0000"


@dataclass
class Inbox:
    """Tallies that a test puts in, and what the leader answers."""

    coming: list[ReceivedTally] = field(default_factory=list)
    confirmed: list[ReceivedTally] = field(default_factory=list)
    positions: dict[str, Position] = field(default_factory=dict)
    down: bool = False

    def _ask(self) -> None:
        if self.down:
            raise OSError(errno.ENOTCONN, "no connection")

    def receive(self) -> Sequence[ReceivedTally]:
        self._ask()
        found, self.coming = self.coming, []
        return found

    def confirm(self, done: Sequence[ReceivedTally]) -> None:
        self._ask()
        self.confirmed += done

    def announce(self, positions: Mapping[str, Position]) -> None:
        self._ask()
        self.positions.update(positions)

    def readers(self) -> Sequence[ReaderState]:
        return ()


def tally(after: int, last: int, token: int = 1, **more: object) -> Tally:
    made = Tally(MDT, after, last, max(0, last - after), "r1", token, 0, False, True, 900.0, 999.0)
    return made.replaced(**more)


class World:
    def __init__(self, positions: Mapping[str, int] | None = None, recording: RecordingCheck | None = None,
                 clock: SettableClock | None = None) -> None:
        self.clock = clock or SettableClock()
        self.inbox = Inbox()
        self.source = TallySource(self.inbox, positions or {MDT: 0}, self.clock, 30.0, recording)
        self.checked = CheckedRecords("readers", self.source, self.clock, 90.0, 30.0)

    def take(self, *tallies: Tally | None) -> list[tuple[int, int]]:
        """What is added of these. Raises as the source does."""
        self.inbox.coming += [ReceivedTally(each, object()) for each in tallies]
        return [(each.after, each.last) for each in self.checked.batches() if isinstance(each, Tally)]

    def added(self, *tallies: Tally | None) -> list[tuple[int, int]]:
        found = []
        self.inbox.coming += [ReceivedTally(each, object()) for each in tallies]
        with suppress(ChangelogError):
            for each in self.checked.batches():
                assert isinstance(each, Tally)
                found.append((each.after, each.last))
        return found


def test_tallies_are_added_in_order_and_acknowledged_after_the_journal() -> None:
    world = World()
    assert world.take(tally(0, 100), tally(100, 150)) == [(0, 100), (100, 150)]
    assert world.source.positions == {MDT: 150}
    assert (world.inbox.confirmed, world.inbox.positions) == ([], {})
    world.source.acknowledge()
    assert len(world.inbox.confirmed) == 2
    assert world.inbox.positions == {MDT: Position(150, 0)}


def test_a_tally_that_arrives_twice_counts_once() -> None:
    world = World()
    assert world.take(tally(0, 100), tally(0, 100)) == [(0, 100)]
    assert world.take(tally(0, 100)) == []
    assert world.source.outcomes == {TallyOutcome.ADDED: 1, TallyOutcome.DUPLICATE: 2}


def test_a_missing_tally_is_requested_again() -> None:
    world = World()
    world.take(tally(0, 100))
    with pytest.raises(ChangelogError, match="the tally after record 100 is missing"):
        world.take(tally(200, 300))
    world.source.acknowledge()
    assert world.inbox.positions[MDT] == Position(100, 1)
    assert world.added(tally(100, 200), tally(100, 200, rereads=1)) == [(100, 200)]
    assert world.source.outcomes[TallyOutcome.OUT_OF_ORDER] == world.source.outcomes[TallyOutcome.STALE] == 1


def test_a_gap_is_missing_records_and_what_follows_is_added() -> None:
    world = World()
    with pytest.raises(MissingRecordsError, match="changelog of MDT0000: records 5 to 9 are missing"):
        world.take(tally(0, 20, gap="records 5 to 9 are missing"))
    assert world.source.positions == {MDT: 20}
    assert world.take(tally(20, 30)) == [(20, 30)]


def test_a_changelog_that_restarted_ends_below_its_beginning() -> None:
    world = World({MDT: 500})
    assert world.added(tally(500, 3, gap="it has restarted", records=3)) == [(500, 3)]
    assert world.added(tally(500, 3, gap="it has restarted", records=3)) == []
    assert world.added(tally(3, 8)) == [(3, 8)]


def test_an_mdt_is_blind_without_tallies_and_with_a_problem() -> None:
    world = World()
    with pytest.raises(ChangelogError, match="waiting for the first tally"):
        world.take()
    world.clock.at += 31.0
    with pytest.raises(ChangelogError, match="no reader has sent a tally since 1970-01-01 00:16:40 UTC"):
        world.take()
    assert world.checked.age.stale
    world.take(tally(0, 5))
    assert not world.checked.age.stale
    with pytest.raises(ChangelogError, match="the MDS is down"):
        world.take(tally(5, 5, problem="the MDS is down"))
    assert "the MDS is down" in world.checked.age.state
    assert world.take(tally(5, 5)) == [(5, 5)]


def test_an_earlier_lease_and_foreign_messages_are_dropped() -> None:
    world = World()
    assert world.take(tally(0, 10, token=7), None, tally(0, 10, 8, mdt="MDT0009")) == [(0, 10)]
    assert world.added(tally(10, 20, token=3)) == []
    assert world.source.outcomes == {TallyOutcome.ADDED: 1, TallyOutcome.MALFORMED: 2, TallyOutcome.STALE: 1}
    world.source.acknowledge()
    assert len(world.inbox.confirmed) == 4


def test_records_from_the_future_are_a_problem_until_none_has_come_for_a_while() -> None:
    world = World()
    for index, newest in enumerate((2000.0, 2003.0, 999.0)):  # the last is of an MDS whose clock is right
        with pytest.raises(ChangelogError, match="1000 s ahead of this node's clock"):
            world.take(tally(index, index + 1, newest_time=newest))
        world.clock.at += 5.0
    world.clock.at += 90.0
    assert world.take(tally(3, 4)) == [(3, 4)]


def test_without_nats_nothing_is_acknowledged_and_nothing_forgotten() -> None:
    world = World()
    world.take(tally(0, 10))
    world.inbox.down = True
    with pytest.raises(OSError, match="no connection"):
        world.source.acknowledge()
    with pytest.raises(ChangelogError, match="tallies of readers: no connection"):
        world.take()
    world.inbox.down = False
    world.source.acknowledge()
    assert (len(world.inbox.confirmed), world.inbox.positions[MDT].index) == (1, 10)


def test_renames_are_passed_on_where_there_are_several_mdts() -> None:
    content = TallyContent(renamed=True)
    world, alone = World({MDT: 0, "MDT0001": 0}), World()
    for each in (world, alone):
        each.added(tally(0, 10, content=content), tally(10, 20), tally(20, 30, content=content))
        each.source.acknowledge()
    assert {mdt: each.renames for mdt, each in world.inbox.positions.items()} == {MDT: 2, "MDT0001": 2}
    assert alone.inbox.positions[MDT].renames == 0


def test_the_leader_compares_the_readers_with_the_state_of_the_mdt() -> None:
    clock = SettableClock()
    recording = RecordingCheck("lustre", {MDT: "cl1"})
    recording.set_states({"lustre-MDT0000": ChangelogState(10, frozenset({"cl2"}))})
    world = World(recording=recording, clock=clock)
    world.added(tally(0, 10))
    with pytest.raises(ChangelogError, match="its user cl1 is not registered"):
        world.take(tally(10, 10))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.randoms(use_true_random=False),
       st.lists(st.sampled_from(["lose", "twice", "late", "split", "ok", "ok"]), min_size=12, max_size=12))
def test_whatever_is_lost_repeated_delayed_or_split_each_record_counts_once(sizes, random, fates) -> None:
    """A reader that reads again when it is asked to, over a network that does anything to its tallies."""
    world, total = World(), sum(sizes)
    position, sent, late = Position(0, 0), 0, []
    counted: list[int] = []
    for step in range(60):
        fate = fates[step] if step < len(fates) else "ok"
        begin, end = sent, min(total, sent + (sizes[step] if step < len(sizes) else 9))
        coming = []
        if end > begin:
            made = tally(begin, end, rereads=position.rereads)
            if fate == "twice":
                coming += [made, made]
            elif fate == "late":
                late.append(made)
            elif fate == "split":  # another reader had begun elsewhere
                coming += [tally(max(0, begin - 2), end, rereads=position.rereads), made]
            elif fate == "ok":
                coming.append(made)
            sent = end
        if random.random() < 0.3:
            coming += late
            late = []
        for after, last in world.added(*coming):
            counted += range(after + 1, last + 1)
        world.clock.at += 6.0
        world.source.acknowledge()
        known = world.inbox.positions.get(MDT, position)
        if known.rereads > position.rereads:
            sent = known.index
        elif sent == total and world.source.positions[MDT] < total and step > len(fates):
            sent = known.index  # its last tally was lost, and nothing follows that would show it
        position = known
    assert counted == list(range(1, total + 1))
