"""Followers have the leader's journal, whatever happens in which order; two leaders do not mix."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tierd.act.gate_world import FINDING
from tests.tierd.act.movers.minilustre import FLASH, HDD
from tests.tierd.cluster.broker import new_fsname
from tests.tierd.later import raising
from tests.tierd.logged import logged
from tierd.act.claim import Claim, ClaimFolder, read_key
from tierd.act.journal.changes import KEYS, QUEUES, ChangedRow, CopyPosition, JournalCopy
from tierd.act.journal.connection import JournalLock
from tierd.act.journal.entry import Stamp
from tierd.act.journal.writer import Journal
from tierd.act.orders import Order, OrderInbox
from tierd.acts import ActKind, Outcome
from tierd.cluster.connection import BrokerError, Connection
from tierd.cluster.journal_stream import JournalFollower, JournalPublisher, NoCopyError, encode
from tierd.cluster.messages import Names, signed
from tierd.config.act import ClaimSettings
from tierd.model import Action
from tierd.structs import packed, unpacked

KEY = "a key that only root can read"


def move(path: str) -> Action:
    return Action(ActKind.MIGRATE, FLASH, "because", FINDING.key, "/d", path, 100)


def contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All copied rows of a journal."""
    db = sqlite3.connect(path)
    try:
        return {table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in KEYS}
    finally:
        db.close()


def work(journal: Journal, first: int, count: int) -> None:
    """What a leader enters."""
    finding = journal.add_finding(FINDING)
    journal.add_messages(finding, ["NOISY"], 1.0)
    journal.queue.add([move(f"/d/{n}\udcff") for n in range(first, first + count)], finding, Stamp("fs", False, 1.0))
    for number in range(first, first + count):
        entry = journal.intend(move(f"/d/{number}\udcff"), finding, HDD, 2.0, False)
        if number % 3:
            journal.end(entry, Outcome.DONE, "", 3.0)
        if number % 2:
            journal.queue.remove([f"/d/{number}\udcff"])
    journal.set_state({"paused": f"at {first}"})
    journal.set_positions({"MDT0000": first})


class Copies:
    """Journals in a folder, and the stream that copies what a leader enters."""

    def __init__(self, connection: Connection, folder: Path) -> None:
        self.connection, self.folder, self.names = connection, folder, Names(new_fsname())
        self.declare()

    def declare(self) -> None:
        self.connection.declare_stream(self.names.journal, self.names.journal_subject, 1, work_queue=False)

    def lose(self) -> None:
        """NATS loses all its data, and has an empty stream then."""
        self.connection.call(lambda _: self.connection.jetstream.delete_stream(self.names.journal))
        self.declare()

    def leading(self, name: str, generation: int = 1) -> tuple[Journal, JournalPublisher]:
        journal = Journal(self.folder / name, copied=True)
        claim = SimpleNamespace(generation=generation)
        return journal, JournalPublisher(self.connection, self.names, journal.changes, claim, KEY)  # type: ignore[arg-type]

    def alone(self, name: str, first: int, count: int) -> None:
        """What a leader enters while it has no cluster."""
        journal = Journal(self.folder / name)
        work(journal, first, count)
        journal.close()

    def following(self, name: str) -> JournalFollower:
        return JournalFollower(self.connection, self.names, self.folder / name, lambda: KEY)

    def take_over(self, name: str, generation: int) -> None:
        """As a process does before it leads."""
        follower = self.following(name)
        try:
            follower.take_over(generation, lambda: None)
        finally:
            follower.close()

    def to_publish(self, name: str, generation: int) -> int:
        """How many rows the process of this journal publishes once it leads."""
        self.take_over(name, generation)
        journal, _ = self.leading(name)
        found = len(journal.changes or ())
        journal.close()
        return found

    def lead(self, name: str, first: int, generation: int = 1, count: int = 3) -> tuple[Journal, JournalPublisher]:
        """Lead, and publish some work."""
        journal, publisher = self.leading(name, generation)
        work(journal, first, count)
        publisher.flush()
        return journal, publisher

    def follow(self, name: str) -> JournalFollower:
        """Copy the messages that the stream has now."""
        follower = self.following(name)
        follower.step()
        return follower

    def are_same(self, name: str, other: str) -> bool:
        return contents(self.folder / name) == contents(self.folder / other)


@pytest.fixture
def copies(connection: Connection, tmp_path: Path) -> Copies:
    return Copies(connection, tmp_path)


def test_an_existing_journal_is_published_completely(copies: Copies) -> None:
    copies.alone("leader", 0, 20)
    copies.take_over("leader", 1)
    copies.leading("leader")[1].flush()
    copies.follow("follower")
    assert copies.are_same("follower", "leader")


def test_a_row_larger_than_a_message_of_nats(copies: Copies) -> None:
    """As a finding with hundreds of directories of long names: it stopped all acts for ever."""
    journal, publisher = copies.leading("leader")
    follower = copies.following("follower")
    names_of = [f"/{number}" + "d" * 4000 for number in range(500)]
    left = [1, 1, 1]

    def publish(*message: Any) -> int:
        if not left:
            raise BrokerError(None, "the leader loads its settings again here")
        return copies.connection.publish(*message) + 0 * left.pop()

    publisher._connection = SimpleNamespace(publish=publish)  # type: ignore[assignment]
    finding = journal.add_finding(replace(FINDING, directories=tuple(names_of)))
    with pytest.raises(BrokerError):
        publisher.flush()
    assert follower.step() == 3
    assert follower.position == 0
    journal.set_figures(finding, replace(FINDING, directories=tuple(reversed(names_of))))
    copies.leading("leader")[1].flush()
    while follower.behind_messages():
        follower.step(20)
    assert copies.are_same("follower", "leader")


def test_late_changes_of_an_earlier_leader_are_ignored(copies: Copies) -> None:
    old, early = copies.lead("old", 0)
    follower = copies.following("new")
    observer = copies.following("observer")
    renewed: list[int] = []
    follower.take_over(2, lambda: renewed.append(1))
    assert renewed
    follower.close()
    new, publisher = copies.leading("new", 2)
    assert not new.changes
    work(new, 100, 5)
    publisher.flush()
    observer.step()
    observer.close()
    observer = copies.following("observer")  # this standby starts again before the late ones
    work(old, 5, 5)
    for _ in range(2):
        with pytest.raises(BrokerError, match="another tierd leads now"):
            early.flush()
    work(new, 200, 5)
    publisher.flush()
    observer.step()
    assert copies.are_same("observer", "new")
    assert not copies.are_same("observer", "old")
    old.close()
    copies.follow("old")
    assert copies.are_same("old", "new")


def test_what_a_leader_did_without_a_cluster_is_published(copies: Copies) -> None:
    """While NATS was away for long. Its standby never had these acts, and could not undo them."""
    copies.lead("leader", 0)[0].close()
    copies.alone("leader", 10, 3)
    assert copies.to_publish("leader", 2)
    copies.leading("leader", 2)[1].flush()
    copies.follow("follower")
    assert copies.are_same("follower", "leader")


def test_what_a_leader_did_without_a_cluster_is_not_replaced(copies: Copies) -> None:
    """Another tierd led meanwhile, and both gave the same numbers: the acts of the other one replaced these, with the
    layouts that an undo needs.
    """
    copies.lead("first", 0)[0].close()
    copies.alone("first", 10, 3)
    path = copies.folder / "first"
    before = contents(path)
    for killed in (JournalCopy, lambda path: Journal(path, copied=True)):  # before it has published all
        first = copies.follow("first")
        first.take_over(2, lambda: None)
        first.close()
        killed(path).close()
    copies.take_over("second", 3)
    copies.lead("second", 100, 3)
    for _ in range(2):
        first = copies.following("first")
        for _ in range(2):
            with pytest.raises(NoCopyError, match=r"without \[cluster\]"):
                first.step()
        with pytest.raises(NoCopyError, match=r"without \[cluster\]"):
            first.take_over(4, lambda: None)
        first.close()
    assert contents(path) == before


def test_what_a_leader_did_not_publish_is_published_when_it_leads_again(copies: Copies) -> None:
    first, _ = copies.lead("first", 0)
    work(first, 10, 3)  # and is killed
    first.close()
    copies.take_over("second", 2)
    copies.take_over("first", 3)
    copies.leading("first", 3)[1].flush()
    copies.follow("second")
    assert copies.are_same("second", "first")


def test_a_copy_that_cannot_be_completed_does_not_lead_even_when_the_stream_was_lost(copies: Copies) -> None:
    """When the leader was restarted, such a standby took its place, and the leader followed the empty journal."""
    journal, publisher = copies.lead("leader", 0)
    work(journal, 10, 2)
    publisher.flush()
    copies.alone("foreign", 0, 1)
    with pytest.raises(NoCopyError, match="is not a copy"):
        copies.follow("foreign")
    copies.connection.remove_message(copies.names.journal, 1)
    late = copies.following("late")
    with pytest.raises(NoCopyError):
        late.step()
    with pytest.raises(NoCopyError, match="copy the leader's journal"):
        copies.take_over("later", 2)
    copies.lose()
    with pytest.raises(NoCopyError, match="copy the leader's journal"):
        late.take_over(2, lambda: None)
    journal.close()
    assert copies.to_publish("leader", 3)


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize(("before", "after"), [(4, 1), (1, 6)], ids=["shorter", "longer"])
def test_a_standby_follows_the_stream_after_a_lost_one(
        copies: Copies, before: int, after: int, restarted: bool) -> None:
    """All data of NATS is lost while leader and standby work. A standby that started after that believed that its copy
    was complete, once the new stream had as many messages.
    """
    journal, publisher = copies.leading("leader")
    follower = copies.following("follower")

    def publish(times: int, first: int) -> None:
        for number in range(times):
            work(journal, first + 10 * number, 2)
            publisher.flush()

    publish(before, 0)
    follower.step()
    copies.connection.call(lambda _: copies.connection.jetstream.delete_stream(copies.names.journal))
    with pytest.raises(BrokerError):
        follower.step()
    copies.declare()
    publish(after, 100)
    if restarted:
        follower.close()
        follower = copies.following("follower")
    for _ in range(2):
        follower.step()
    late = copies.follow("late")
    for each in (follower, late):
        each.close()
    for name in ("follower", "late"):
        assert copies.are_same(name, "leader")
    assert copies.to_publish("follower", 2)
    assert not copies.to_publish("late", 3)


def test_what_left_the_queue_does_not_come_back_from_a_standby(copies: Copies) -> None:
    """After NATS had lost the stream, and the leader was restarted: a standby that led next carried out old orders."""
    journal, publisher = copies.leading("leader")
    inbox = OrderInbox(journal.db, lambda: Stamp("fs", False, 1.0))
    journal.queue.add([move("/d/1"), move("/d/2")], journal.add_finding(FINDING), Stamp("fs", False, 1.0))
    inbox.put([Order("promote", "/d/3", "root")])
    publisher.flush()
    follower = copies.follow("follower")
    journal.queue.remove(["/d/1"])
    publisher.flush()
    copies.lose()
    inbox.take(1)
    inbox.done()
    journal.close()
    assert copies.to_publish("leader", 2)
    copies.leading("leader", 2)[1].flush()
    follower.step()
    assert copies.are_same("follower", "leader")


def test_a_stream_that_lost_its_end(copies: Copies) -> None:
    """As after a power cut, if the servers do not store each message at once: later messages have the same numbers."""
    connection, names = copies.connection, copies.names
    for number in range(2):
        connection.publish(names.journal_subject, signed(encode(1)[0], KEY), str(number))
    connection.remove_message(names.journal, 1)
    for name in ("leader", "standby"):
        copy = JournalCopy(copies.folder / name)
        rows = [ChangedRow("act_directories", b"/d", {"place": b"/d"})]
        copy.apply(rows, CopyPosition(3, connection.stream_state(names.journal)[0], b"the message that was lost", 1))
        copy.close()
    assert copies.to_publish("leader", 2) == 1 + len(QUEUES)
    with pytest.raises(NoCopyError, match="copy the leader's journal"):
        copies.follow("standby")


def test_a_standby_takes_no_journal_that_a_leader_writes(copies: Copies) -> None:
    """It would end the recording of changes, and the leader's standby would lack every act from then on."""
    lock = JournalLock(copies.folder / "leader")
    journal, _ = copies.leading("leader")
    with pytest.raises(OSError, match="another tierd writes this journal"):
        copies.following("leader")
    work(journal, 0, 2)
    assert journal.changes
    journal.close()
    lock.close()
    standby = copies.following("leader")
    with pytest.raises(OSError, match="another tierd writes this journal"):
        JournalLock(copies.folder / "leader")
    standby.close()
    JournalLock(copies.folder / "leader").close()


def test_without_nats_changes_wait(copies: Copies) -> None:
    journal, publisher = copies.leading("leader")
    work(journal, 0, 3)
    no_answer = raising(BrokerError(None, "NATS did not answer"))
    publisher._connection = SimpleNamespace(publish=no_answer)  # type: ignore[assignment]
    with pytest.raises(BrokerError):
        publisher.flush()
    assert journal.changes
    publisher._connection = copies.connection
    work(journal, 10, 3)
    publisher.flush()
    copies.follow("follower")
    assert copies.are_same("follower", "leader")


def test_without_a_cluster_no_changes_are_recorded(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", copied=True)
    work(journal, 0, 2)
    journal.close()
    alone = Journal(tmp_path / "j")
    work(alone, 2, 2)
    alone.close()
    db = sqlite3.connect(tmp_path / "j")
    left = db.execute("SELECT name FROM sqlite_master WHERE name = 'changed_rows' OR type = 'trigger'").fetchall()
    assert left == []
    db.close()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["work", "end", "drop", "copy"]), st.integers(0, 30)), max_size=12))
def test_any_order_of_work_and_copies_converges(tmp_path_factory: pytest.TempPathFactory,
                                                steps: list[tuple[str, int]]) -> None:
    """Without NATS: portions are applied one after the other, some of them twice."""
    folder = tmp_path_factory.mktemp("j")
    journal = Journal(folder / "leader", copied=True)
    copy = JournalCopy(folder / "copy")
    sequence = 0
    for what, number in [*steps, ("copy", 0)]:
        if what == "work":
            work(journal, number, 3)
        elif what == "end":
            for entry in journal.unfinished()[:number]:
                journal.end(entry.id, Outcome.GAVE_WAY, "busy", 9.0)
        elif what == "drop":
            journal.queue.remove(move.path for move in journal.queue.all())
        else:
            while (portion := journal.changes.next(7)) is not None:
                sequence += 1
                rows = unpacked(portion[0], tuple[ChangedRow, ...])
                copy.apply(rows, CopyPosition(sequence))
                copy.apply(rows, CopyPosition(sequence))
                journal.changes.forget(portion[1], CopyPosition(sequence))
    assert contents(folder / "copy") == contents(folder / "leader")


@pytest.mark.parametrize("data", [
    b"", b"x", packed([]), packed({}), encode(1)[0].replace(b"version\x01", b"version\x02"),
    *(encode(1, packed(rows))[0] for rows in ({}, [3], [{"table": "sqlite_master", "key": 1, "values": None}],
                                              [{"table": "actions", "key": 1, "values": {"id": [1]}}]))])
def test_malformed_messages_of_the_journal_are_refused(copies: Copies, data: bytes) -> None:
    copies.connection.publish(copies.names.journal_subject, signed(data, KEY))
    with pytest.raises(ValueError, match="not a message of the journal"):
        copies.follow("follower")


@pytest.mark.parametrize("secret", ["", "another key"])
def test_changes_that_are_not_signed_with_the_key_on_lustre_are_ignored(copies: Copies, secret: str) -> None:
    """Whoever may write the stream cannot make a standby believe in an act, or in a later leader."""
    journal, publisher = copies.lead("leader", 0)
    (forged,) = encode(7, packed([ChangedRow("actions", 99, {"id": 99, "place": "/d/forged"})]))
    copies.connection.publish(copies.names.journal_subject, signed(forged, secret) if secret else forged)
    work(journal, 10, 2)
    publisher.flush()
    said = logged()
    copies.follow("follower")
    assert copies.are_same("follower", "leader")
    assert [sentence for sentence in said if sentence.startswith("ignored message 2 of the journal")]


def test_without_the_key_a_standby_does_not_lead(copies: Copies) -> None:
    copies.lead("leader", 0)
    key = [""]
    follower = JournalFollower(copies.connection, copies.names, copies.folder / "follower", lambda: key[0])
    with pytest.raises(NoCopyError, match="no key in the folder of the claim"):
        follower.step()
    key[0] = KEY
    follower.step()
    assert copies.are_same("follower", "leader")


def test_the_holder_of_the_claim_makes_one_key(tmp_path: Path) -> None:
    folder = ClaimFolder(tmp_path / ".tierd")
    assert read_key(folder) == ""
    first, second = (Claim(folder, f"host={name}", lambda: 0.0, ClaimSettings()) for name in "ab")
    assert first.hold() is None
    key = first.make_key()
    assert len(key) == 64
    assert second.make_key() == read_key(folder) == key
    first.release()
    assert second.hold() is None
    assert (second.generation, read_key(folder)) == (2, key)
