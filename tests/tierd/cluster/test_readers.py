"""Readers, most of them on a real nats-server: nothing lost and nothing twice, whoever is killed, stopped or split."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.tierd.cluster.broker import Broker, new_fsname, until
from tests.tierd.cluster.reader_world import KEY, SETTINGS, Leader, MadeChangelog, lives, new_table, reader_over
from tests.tierd.logged import logged
from tests.tierd.sense.clocks import SettableClock
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.messages import Names, signed
from tierd.cluster.reader import MAX_WINDOWS, Lease, MdtReader, Reader, Window
from tierd.config.settings import ReaderSettings
from tierd.sense.changelogs.tally_source import Position, TallyOutcome

MDT = "MDT0000"


class World:
    """A changelog that grows, and a leader."""

    def __init__(self, connection: Connection) -> None:
        self.changelog = MadeChangelog()
        self.names = Names(new_fsname())
        self.connection = connection
        self.leader = Leader(connection, self.names, {MDT: 0})
        self.leader.step()
        self.files = 0

    def work(self, files: int) -> None:
        self.changelog.records[MDT] += lives(*range(self.files, self.files + files))
        self.files += files

    def cycle(self, work: int = 0) -> None:
        """One cycle of the leader. Nothing may be cleared before the journal has it."""
        if work:
            self.work(work)
        self.leader.step()
        assert self.changelog.cleared(MDT) <= self.leader.journal[MDT]

    def until_all_is_counted(self, seconds: float = 30.0) -> None:
        def done() -> bool:
            self.cycle()
            return self.leader.counts[0] >= self.files and self.leader.journal[MDT] == 3 * self.files
        until(done, f"{self.files} files are counted: {self.leader.counts}, {self.leader.problem}", seconds)
        assert self.leader.counts[0] == self.files
        assert self.leader.records == 3 * self.files


@pytest.fixture
def world(connect) -> World:
    return World(connect())


@pytest.fixture
def reading(connect):
    """Starts a reader in threads."""
    ends: list[Callable[[], None]] = []

    def started(world: World, *broker: Broker, **more: Any) -> Reader:
        made = reader_over(world.changelog, connect("reader", *broker), world.names, "r1", [MDT], **more)
        ends.extend((made.stop, *(partial(thread.join, 10) for thread in made.start())))
        return made

    yield started
    for end in ends:
        end()


def test_records_reach_the_leader_and_are_cleared_after_its_journal_has_them(world, reading) -> None:
    reader = reading(world)
    for _ in range(10):
        world.cycle(work=100)
    world.until_all_is_counted()
    assert world.leader.counts == (1000, 1000)
    assert world.leader.problem == ""
    until(lambda: world.changelog.cleared(MDT) == 3000, "the changelog is cleared")
    (activity,) = world.leader.table.of_job("small.1", 0.0)
    assert len(activity.candidates) == 200
    assert all(candidate.path.startswith("/proj/in/f") for candidate in activity.candidates)
    state = reader.state()
    assert (state.mdts, state.records, state.problem) == ({MDT: 3000}, 3000, "")


def test_after_a_reader_stands_still_every_record_counts_once(world, connect) -> None:
    """Until it goes on, it is for all others as if it was killed."""
    said = logged()
    first, second = (reader_over(world.changelog, connect("reader"), world.names, name, [MDT]) for name in ("r1", "r2"))

    def reads(reader: Reader, work: int = 5) -> bool:
        reader.step_leases()
        reader.step(MDT)
        world.cycle(work)
        return MDT in reader.state().mdts

    until(lambda: reads(first) and world.leader.counts[0] > 300, "r1 has sent tallies")
    until(lambda: reads(second), "r2 takes over", 30.0)
    until(lambda: reads(second) and world.leader.source.progress[MDT].reader == "r2", "r2 sends tallies")
    assert not reads(first)
    assert f"{MDT}: the lease is lost" in said
    until(lambda: reads(second, 0) and world.leader.counts[0] >= world.files, "r2 has sent all")
    world.until_all_is_counted()


def position_of(world: World) -> Position:
    return Position(world.leader.journal[MDT], world.leader.source.rereads[MDT])


def test_without_nats_a_reader_stops_reading_and_clears_nothing(own_broker, connect, reading) -> None:
    world = World(connect("leader", own_broker))
    reader = reading(world, own_broker)
    world.work(50)
    world.until_all_is_counted()
    own_broker.kill()
    cleared = world.changelog.cleared(MDT)
    world.work(1000)
    until(lambda: not reader.state().mdts, "the leases expire")
    world.work(10)
    assert not reader.step(MDT)
    assert reader.state().problem
    reader.describe()
    assert "not connected yet" not in reader.state().problem
    assert world.changelog.cleared(MDT) <= world.leader.journal[MDT]
    world.leader.step()
    assert "NATS" in world.leader.problem
    own_broker.start()
    until(lambda: world.connection.connected, "the broker is back", 30.0)
    world.until_all_is_counted(60.0)
    assert world.changelog.cleared(MDT) >= cleared
    until(lambda: reader.state().problem == "", "it delivers, and says nothing else")
    stored = world.connection.bucket(world.names.readers)
    until(lambda: b'"problem":""' in (value.data if (value := stored.get("r1")) else b""), "so does its description")


def test_a_reader_that_lost_its_lease_keeps_no_problem_of_that_mdt(world, connect) -> None:
    reader = reader_over(world.changelog, connect("reader"), world.names, "r1", ["MDT0001"])
    reader.step_leases()
    reader.step("MDT0001")
    assert reader.state().problem == "MDT0001: the leader has not published its position"
    reader.stop()
    reader.step("MDT0001")
    assert reader.state().problem == ""


def test_a_new_leader_begins_at_the_position_of_the_journal(world, reading) -> None:
    reading(world)
    world.work(100)
    world.until_all_is_counted()
    world.work(100)
    until(lambda: world.leader.step(journal=False) or world.leader.counts[0] == 200, "more is counted")
    assert world.leader.journal[MDT] == 300
    assert world.changelog.cleared(MDT) <= 300
    successor = Leader(world.connection, world.names, world.leader.journal)
    until(lambda: successor.step() or successor.counts[0] >= 100, "the successor counts the rest", 90.0)
    assert successor.counts[0] == 100
    assert successor.journal[MDT] == 600


def test_leases(world, connect) -> None:
    now = [100.0]

    def lease(name: str, clock: Callable[[], float] = lambda: now[0]) -> Lease:
        return Lease(connect("reader").bucket(world.names.leases), MDT, name, 5.0, clock)

    one, two = lease("one"), lease("two")
    assert one.step()
    assert not two.step()
    first = one.token
    now[0] += 2.0
    assert one.step()
    assert one.token == first
    now[0] += 4.0
    assert not one.held  # it may have expired
    one.give_up()
    assert two.step()
    assert two.token > first
    assert not one.step()


@pytest.mark.parametrize("secret", ["", "another key"])
def test_a_tally_that_is_not_signed_with_the_key_on_lustre_does_not_count(world, connect, secret) -> None:
    """The NKey of a reader alone is not enough to have something counted."""
    connection = connect("reader")
    sent: list[Window] = []
    reader = MdtReader(MDT, "r1", world.changelog.read, world.changelog.clear, "cl1", new_table, SETTINGS,
                       SystemClock(), SystemClock().monotonic)
    world.work(10)
    until(lambda: reader.step(1, position_of(world), sent.append) or [each for each in sent if each.tally.records],
          "it has read")
    for window in sent:
        connection.publish(world.names.tally_subject(MDT), signed(window.data, secret) if secret else window.data)
    until(lambda: world.cycle() or world.leader.source.outcomes[TallyOutcome.MALFORMED] == len(sent), "all are refused")
    assert (world.leader.counts, world.leader.journal[MDT]) == ((0, 0), 0)


def test_a_reader_keeps_its_tallies_until_there_is_a_key(world, reading) -> None:
    said = logged()
    key = [""]
    world.work(10)
    reading(world, secret=lambda: key[0])
    until(lambda: world.cycle() or any("has made no key" in sentence for sentence in said), "it says what it waits for")
    assert world.leader.counts == (0, 0)
    key[0] = KEY
    until(lambda: world.cycle() or world.leader.counts[0] == world.files, "all is counted")


class Site:
    def __init__(self) -> None:
        self.log = MadeChangelog()
        self.clock = SettableClock()
        self.sent: list[Window] = []
        self.reader = MdtReader(MDT, "r1", self.log.read, print, "", new_table, ReaderSettings(window_seconds=0.4),
                                self.clock, self.clock.now)

    def step(self, seconds: float = 0.5) -> None:
        self.clock.at += seconds
        self.reader.step(1, Position(0, 0), self.sent.append)


def test_a_tally_ends_before_a_late_record_and_is_not_at_the_end() -> None:
    site = Site()
    records = lives(*range(4))
    late = records.pop(7)
    site.log.records[MDT] += records
    site.step(0.0)
    site.step()
    assert [(each.tally.after, each.tally.last) for each in site.sent] == [(0, 7)]
    site.step()
    assert not any(each.tally.at_end or each.tally.gap for each in site.sent)
    site.log.records[MDT].insert(7, late)
    for _ in range(3):
        site.step()
    assert [(each.tally.after, each.tally.last, each.tally.gap) for each in site.sent if each.tally.records] == [
        (0, 7, ""), (7, 12, "")]
    assert site.sent[-1].tally.at_end


def test_a_lost_record_is_a_gap_after_two_seconds() -> None:
    site = Site()
    records = lives(*range(4))
    del records[7]
    site.log.records[MDT] += records
    for _ in range(4):
        site.step()
    assert not any(each.tally.gap for each in site.sent)
    site.step()
    assert [each.tally.gap for each in site.sent if each.tally.gap] == ["records 8 to 8 are missing"]
    assert site.reader.read_position == 12


def test_a_reader_that_keeps_as_many_tallies_as_it_may_reads_no_more() -> None:
    site = Site()
    for number in range(2 * MAX_WINDOWS):
        site.log.records[MDT] += lives(number)
        site.step()
    assert site.reader.waiting == len(site.sent) == MAX_WINDOWS
    assert site.reader.records == 3 * (MAX_WINDOWS + 1), "the first window begins with the first step"
