"""What a mover refuses, and what it does when it dies, stands still, or loses NATS: at named points, in one process."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.act.movers.minicalls import Killed, just_before
from tests.tierd.act.movers.minilustre import FLASH, HDD
from tests.tierd.cluster.broker import Broker, until
from tests.tierd.cluster.cluster_world import ClusterWorld, SimpleClock, over_nats
from tests.tierd.later import raising
from tierd.act.claim import ClaimFolder
from tierd.act.movers.checks import objects_digest
from tierd.act.movers.moves import Move, MoveResult
from tierd.acts import ActKind, Outcome
from tierd.cluster import messages
from tierd.cluster.connection import BrokerError, BrokerUnknown, Bucket, Connection, Delivery, Outgoing
from tierd.cluster.dispatch import NatsDispatch
from tierd.cluster.messages import FileToMove, MoveMessage, Permit, ResultMessage, WorkHint
from tierd.cluster.mover import Mover
from tierd.config.act import ActSettings, Mode
from tierd.model import Action
from tierd.refusal import Reason, Refusal


@pytest.fixture
def world(shared_broker: Broker, tmp_path: Path) -> Iterator[ClusterWorld]:
    made = over_nats(tmp_path, shared_broker, movers=0, cluster={"timeout_seconds": PATIENCE_SECONDS})
    yield made
    made.close()


PATIENCE_SECONDS = 60.0
"""A machine that is busy with other tests may run a thread some seconds late."""
SOURCE = "lustre-OST0002"


def dying_at(point: str) -> Callable[[str], None]:
    return just_before(point, raising(Killed(point)))


def message_for(world: ClusterWorld, of: str, **changes: Any) -> MoveMessage:
    """A message as the leader of this world would make it."""
    node = world.lustre.names[of]
    permit = messages.decode(Permit, permit_of(world))
    now = world.clock.now()
    file = FileToMove(1, str(node.fid), messages.path_to_wire(of), len(node.store.data),
                      objects_digest(node.store.layout))
    of_file = {name: changes.pop(name) for name in tuple(changes) if name in FileToMove.__slots__}
    made = MoveMessage("x-1", world.names.fs, permit.generation, permit.epoch, "lustre-OST0002", now + 30,
                       messages.layout_to_wire(FLASH), (replace(file, **of_file),))
    return replace(made, **changes)


def hint(mover: Mover) -> None:
    mover.take_hint(messages.encode(WorkHint((SOURCE,))))


def handed_over(world: ClusterWorld, *paths: str) -> None:
    until(lambda: world.dispatch.trouble() is None, "ready")
    world.submit(*paths)
    until(lambda: world.gate.pump(world.clock.now() + 0.2) or world.gate.under_way, "they are handed over")


def permit_of(world: ClusterWorld) -> bytes:
    value = world.dispatch.connection.bucket(world.names.control).get(messages.PERMIT)  # type: ignore[attr-defined]
    return bytes(value.data)


def sent(world: ClusterWorld, message: MoveMessage, secret: str | None = None) -> ResultMessage | None:
    """What a mover reports of a message; None if it removes it without a result."""
    dispatch = world.dispatch
    assert isinstance(dispatch, NatsDispatch)
    connection = dispatch.connection
    messages.declare_source(connection, world.names, message.source, 1, 2.0)
    data = messages.signed(messages.encode(message), world.claim.holder if secret is None else secret)
    connection.publish(world.names.move_subject(message.source), data)
    take_one(world.mover("m1", start=False))
    assert connection.stream_state(world.names.moves)[1].messages == 0
    found = connection.fetch(world.names.results, messages.RESULTS_CONSUMER)
    if found is None:
        return None
    found.acknowledge()
    return messages.unverified(ResultMessage, found.data)


def result(world: ClusterWorld, message: MoveMessage, secret: str | None = None) -> tuple[str, str]:
    found = sent(world, message, secret)
    (file,) = found.files
    return str(file.result), file.detail


@pytest.mark.parametrize(("changes", "secret", "why"), [
    ({}, "stolen NATS key", "the signature"), ({"fs": "other"}, None, "it belongs to other lustre-OST0002")])
def test_a_message_that_is_not_of_the_leader_is_removed(
        world: ClusterWorld, changes: dict[str, Any], secret: str | None, why: str) -> None:
    (path,) = world.files(1)
    assert sent(world, message_for(world, path, **changes), secret) is None
    assert world.pool(path) == "hdd"
    assert f"refused a message from NATS: {why}" in "".join(world.log)


@pytest.mark.parametrize(("changes", "detail"), [
    ({"path": "/d/1"}, "another file has this name now"),
    ({"path": "/elsewhere/0"}, "No such file"),
    ({"size_bytes": 99}, "100 bytes, and had 99"),
    ({"objects": "other"}, "its layout was changed"),
    ({"layout_generation": 9}, "its layout was changed"),
    ({"path": "../etc"}, "not a path"),
    ({"fid": "nonsense"}, "FID"),
    ({"fid": "[0x200000400:0x7777:0x0]"}, "another file has this name now"),
    ({"layout": messages.layout_to_wire(Layout((Component(pool="archive"),), composite=False))}, "'archive'"),
    ({"layout": "not a layout"}, ""),
    ({"generation": 99}, "generation 1"),
    ({"epoch": 99}, "withdrawn the message"),
    ({"deadline": 1.0}, "deadline"),
    ({}, "held for maintenance"),
    ({"size_bytes": 100}, "disk repair"),  # nothing differs, but for the pause file of its own node
], ids=str)
def test_a_message_that_does_not_match_lustre_moves_nothing(world: ClusterWorld, changes: dict[str, Any],
                                                           detail: str) -> None:
    path = world.files(2)[0]
    world.lustre.pool_members["archive"] = (SOURCE,)
    message = message_for(world, path, **changes)
    permit = Permit(message.generation, message_for(world, path).epoch, "" if changes else detail)
    world.dispatch.connection.bucket(world.names.control).put(  # type: ignore[attr-defined]
        messages.PERMIT, messages.encode(permit))
    world.settings = replace(world.settings, act=ActSettings(pause_file=str(world.pause)))
    if detail == "disk repair":
        world.pause.write_text(detail)
    word, words = result(world, message)
    assert word in {"refused", "gave-way", "stale"}
    assert detail in words
    assert world.pool(path) == "hdd"


def test_a_file_that_had_data_on_its_mdt_only_is_found_moved(world: ClusterWorld) -> None:
    """It had no objects to compare. A killed server has forgotten that another mover had its message."""
    (path,) = world.files(1)
    message = message_for(world, path, objects="", layout_generation=9)
    list(world.engine().move([Move(path, FLASH)]))
    assert result(world, message)[0] == "already"


@pytest.mark.parametrize(("kind", "undoes", "outcome"), [
    ("request", None, "done"), ("striping", 1, "done"), ("striping", None, "refused")])
def test_a_mover_moves_in_a_scope_that_is_only_observed_what_was_ordered_or_undoes_a_move(
        world: ClusterWorld, kind: str, undoes: int | None, outcome: str) -> None:
    world.settings = replace(world.settings, act=ActSettings(mode=Mode.OBSERVE))
    world.mover("m1")
    (path,) = world.files(1)
    world.gate.submit([Action(ActKind.MIGRATE, FLASH, "", (kind, "", ""), "/d", path, undoes=undoes)], world.finding)
    assert world.pump_until_empty() == {outcome: 1}


def test_a_long_reason_for_a_pause(world: ClusterWorld) -> None:
    """Nobody could read the permit, and no leader could replace it. The name of a job need not be text."""
    world.dispatch.withdraw(Refusal(Reason.JOB_IDLE, "\udcff" + "x" * 20_000))
    assert messages.decode(Permit, permit_of(world)).held == "\\udcff" + "x" * 1994


def test_a_permit_that_nats_may_have_stored_is_written_again(
        world: ClusterWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Movers would wait for ever for the end of a pause that the leader did not know of."""
    update, unknown = Bucket.update, [BrokerUnknown(None, "NATS did not answer")]

    def late(bucket: Bucket, key: str, data: bytes, last: int) -> int:
        found = update(bucket, key, data, last)
        if unknown:
            raise unknown.pop()
        return found

    monkeypatch.setattr(Bucket, "update", late)
    world.dispatch.withdraw(Refusal(Reason.PAUSED, "night"))
    world.mover("m1")
    world.submit(*world.files(1))
    assert world.pump_until_empty() == {"done": 1}
    connection = world.dispatch.connection  # type: ignore[attr-defined]
    connection.call(lambda _: connection.jetstream.delete_stream(world.names.moves))
    world.submit(*world.files(2)[1:])
    assert world.pump_until_empty()["done"] == 1, "what was declared is declared again"


def test_a_new_leader_before_the_exchange_stops_it(world: ClusterWorld) -> None:
    """The claim changes hands after the copy: the second check is just before the exchange."""
    (path,) = world.files(1)
    calls = world.calls()
    drop_cache = calls.drop_cache

    def replaced(*arguments: Any) -> None:
        drop_cache(*arguments)
        world.claims.make(f"{world.claim.generation + 1:018d}", "host=leader2")

    calls.__dict__["drop_cache"] = replaced
    mover = world.mover("m1", calls=calls, start=False)
    handed_over(world, path)
    take_one(mover)
    assert mover.results == {"stale": 1}
    assert world.pool(path) == "hdd"
    assert not world.lustre.descriptors
    assert len(world.lustre.live_stores()) == 1


@pytest.mark.parametrize("point", ["fetched", "begin", "exchanged", "publish", "published", "moved"])
def test_a_mover_that_dies_at_a_point_is_replaced(world: ClusterWorld, point: str) -> None:
    paths = world.files(4)
    before = {path: world.lustre.contents(path) for path in paths}
    one_dies(world, point, *paths)
    world.mover("replaces")
    found = world.pump_until_empty()
    assert set(found) <= {"done"}
    assert world.outcomes() == dict.fromkeys(paths, "done")
    assert {world.pool(path) for path in paths} == {"flash"}
    assert {path: world.lustre.contents(path) for path in paths} == before
    world.lustre.settle()
    assert len(world.lustre.live_stores()) == 4


def test_a_doubtful_file_stops_the_mover(world: ClusterWorld) -> None:
    """Names are not text: the mover could report neither the file nor that it stopped, and was started again."""
    path, calls = "/d/\udcff", world.calls()
    node, swap = world.lustre.create(path, b"data" * 25), calls.swap_and_close
    node.xattrs["user.\udcff"] = b""

    def swap_and_remove(*arguments: Any) -> None:
        swap(*arguments)
        node.xattrs.clear()

    calls.__dict__["swap_and_close"] = swap_and_remove
    world.lose_project_at_exchange = True
    mover = world.mover("m1", calls=calls, start=False)
    handed_over(world, path)
    take_one(mover)
    (ended,) = world.ended()
    assert ended.result == "doubtful"
    assert "the project was" in ended.detail
    assert "user.\\udcff (m1)" in ended.detail
    assert any("STOPPED" in line for line in world.log)
    mover.describe()
    assert mover.state().stopped.startswith("/d/\\udcff: the project was")


def test_the_engine_checks_what_the_message_says_again(world: ClusterWorld) -> None:
    message = message_for(world, *world.files(1), own_mirrors=True)
    (file,) = message.files
    move = world.mover("m1", start=False)._checked(message, file)
    assert isinstance(move, Move)
    assert (move.size_bytes, move.objects, move.own_mirrors) == (100, file.objects, True)


def given_back_and_delivered_anew(world: ClusterWorld) -> str:
    """A file that a mover gave back. Its message is delivered as for the first time, as after a kill of the server."""
    (path,) = world.files(1)
    mover = world.mover("m1", dying_at("published"), start=False)
    handed_over(world, path)
    mover.stopped = "by hand"
    with pytest.raises(Killed):
        take_one(mover)
    assert [(str(each.result), each.detail) for each in world.ended()] == [("gave-way", "by hand")]
    connection, moves = world.dispatch.connection, world.names.moves  # type: ignore[attr-defined]
    connection.call(lambda _: connection.jetstream.delete_consumer(moves, SOURCE))
    messages.declare_source(connection, world.names, SOURCE, 1, 2.0)
    return path


def test_the_result_of_a_message_that_the_server_delivers_again_is_no_repetition(world: ClusterWorld) -> None:
    path, mover = given_back_and_delivered_anew(world), world.mover("m2", start=False)
    take_one(mover)
    assert (world.pool(path), mover.redelivered) == ("flash", 0)
    assert world.pump_until_empty() == {"already": 1}
    until(lambda: not world.gate.attend() and world.outcomes() == {path: "done"}, "the journal has the move")
    assert [each.detail for each in world.journal.entries(Outcome.DONE)] == ["a mover reported it late; found done"]


class AnswersLate(Connection):
    """Of one call it is not known what NATS has stored, as after this process stood still."""

    calls = 0

    def publish_all(self, outgoing: Sequence[Outgoing]) -> list[int | BrokerError]:
        found = super().publish_all(outgoing)
        self.calls += 1
        if self.calls == 1:
            raise BrokerUnknown(None, "NATS did not answer")
        return found


def test_messages_that_nats_may_have_are_under_way(world: ClusterWorld) -> None:
    (path,) = world.files(1)
    dispatch = world.nats_dispatch()
    dispatch.connection = AnswersLate(world.settings.cluster, "leader")
    world.closing.append(dispatch.connection.close)
    world.gate_with(dispatch)
    mover = world.mover("m1", start=False)
    handed_over(world, path)
    assert (dispatch.connection.calls, world.gate.under_way) == (1, 1)
    take_one(mover)
    assert [str(each.result) for each in world.ended()] == ["done"]
    assert world.outcomes_of(path) == ["done"]


def test_a_result_waits_while_nats_has_no_leader_for_its_stream(world: ClusterWorld) -> None:
    world.files(1)
    publishes, connection = Held("publish"), world.dispatch.connection  # type: ignore[attr-defined]
    mover = world.mover("m1", publishes, start=False)
    handed_over(world, "/d/0")
    stepping(world, mover, publishes)
    connection.call(lambda _: connection.jetstream.delete_stream(world.names.results))
    publishes.go_on.set()
    until(lambda: any("NATS refuses a result" in words for words in world.log), "it was refused")
    messages.declare(connection, world.names, 1)
    assert [str(each.result) for each in world.ended()] == ["done"]
    assert world.dispatch.counts.expired == 0, "it came"  # type: ignore[attr-defined]


@pytest.mark.parametrize("then", ["at once", "later", "withdrawn"])
def test_a_file_that_was_moved_for_an_act_that_was_given_up_counts_once(world: ClusterWorld, then: str) -> None:
    path, mover = given_back_and_delivered_anew(world), world.mover("m2", start=False)
    world.gate.pump(world.clock.now() + 0.2)  # the leader sends the file again
    take_one(mover)
    if then != "at once":
        until(lambda: world.gate.attend() or world.dispatch.counts.results["done"], "the late result is there")  # type: ignore[attr-defined]
    if then == "withdrawn":
        world.gate.operating_state.pause("by hand")
    else:
        take_one(mover)
    until(lambda: world.gate.attend() or not world.gate.under_way, "the second result is there")
    assert world.outcomes_of(path) == ["gave-way", "done"]


class Held:
    """Stops a thread at one point until the test lets it go on."""

    def __init__(self, point: str) -> None:
        self._point = point
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, name: str) -> None:
        if name == self._point:
            self.reached.set()
            assert self.go_on.wait(PATIENCE_SECONDS)


def take_one(mover: Mover) -> None:
    """The mover takes a message and carries it out. NATS delivers a message some time after it was published."""
    def taken() -> bool:
        hint(mover)
        return mover.step() == SOURCE

    until(taken, "a message is taken")


def one_dies(world: ClusterWorld, point: str, *paths: str) -> None:
    """A mover takes a message with these files, and dies at a point."""
    dying = world.mover("dies", dying_at(point), start=False)
    handed_over(world, *paths)
    with pytest.raises(Killed):
        take_one(dying)
    with world.lock:
        world.lustre.process_died()


def stepping(world: ClusterWorld, mover: Mover, until_held: Held | None = None) -> threading.Thread:
    thread = threading.Thread(target=take_one, args=(mover,))
    thread.start()
    world.closing.append(thread.join)
    assert until_held is None or until_held.reached.wait(PATIENCE_SECONDS)
    return thread


def test_a_suspended_mover_completes_one_file_and_leaves_the_rest(world: ClusterWorld) -> None:
    """Its message belongs to another mover now. An acknowledgement would let a third one work on the target."""
    paths = world.files(8)  # two messages from one target
    stands_still, works = Held("begin"), Held("begin")
    first, second = world.mover("m1", stands_still, start=False), world.mover("m2", works, start=False)
    third = world.mover("m3", start=False)
    handed_over(world, *paths)
    stopped = stepping(world, first, stands_still)
    working = stepping(world, second, works)
    stands_still.go_on.set()
    stopped.join(PATIENCE_SECONDS)
    assert dict(first.results) == {"done": 1}
    hint(third)
    assert third.step() == "", "two movers work on one target"
    assert [str(outcome.result) for outcome in world.ended()] == ["done"]
    assert world.dispatch.counts.stale == 0  # type: ignore[attr-defined]
    works.go_on.set()
    working.join(PATIENCE_SECONDS)
    world.mover("m4")
    assert world.pump_until_empty() == {"done": 7}
    assert world.outcomes() == dict.fromkeys(paths, "done")


def test_a_mover_that_stood_still_while_another_one_moved_the_file(world: ClusterWorld) -> None:
    """It reported that the file had grown, and the journal never had the move."""
    stands_still, publishes = Held("begin"), Held("publish")
    first, second = world.mover("m1", stands_still, start=False), world.mover("m2", publishes, start=False)
    handed_over(world, *world.files(1))
    for mover, held in ((first, stands_still), (second, publishes)):
        stepping(world, mover, held)
    world.lustre.write("/d/0", b"more", 100)
    stands_still.go_on.set()
    assert [str(each.result) for each in world.ended()] == ["refused"]
    publishes.go_on.set()
    until(lambda: not world.gate.attend() and world.outcomes() == {"/d/0": "done"}, "the journal has the move")


def test_a_lease_is_extended_only_by_an_answer_before_its_end(world: ClusterWorld) -> None:
    """NATS answers also after it has given the message to another mover."""
    (path,) = world.files(1)
    held = Held("begin")
    mover = world.mover("m1", held, start=False)
    handed_over(world, path)
    thread = stepping(world, mover, held)
    (delivery,) = mover.held
    begun = mover.held[delivery]
    mover.extend_once()
    extended = mover.held[delivery]
    assert extended > begun
    assert not mover.expired(delivery)
    ask = mover.connection.extend_leases

    def late(deliveries: Sequence[Delivery]) -> list[Delivery]:
        world.clock.stood_still_seconds = 100.0
        return ask(deliveries)

    mover.connection.__dict__["extend_leases"] = late
    mover.extend_once()
    assert mover.held[delivery] == extended
    assert mover.expired(delivery)
    held.go_on.set()
    thread.join(PATIENCE_SECONDS)
    assert dict(mover.results) == {"done": 1}
    assert world.dispatch.connection.stream_state(world.names.moves)[1].messages == 1, "it was not acknowledged"  # type: ignore[attr-defined]


def test_a_mover_that_ends_extends_the_lease_of_the_file_in_hand(world: ClusterWorld) -> None:
    """Completing a large file may take longer than a lease, and the message would go to another mover."""
    (path,) = world.files(1)
    held = Held("begin")
    mover = world.mover("m1", held)
    handed_over(world, path)
    assert held.reached.wait(PATIENCE_SECONDS)
    mover.stop()
    (delivery,) = mover.held
    begun = mover.held[delivery]
    until(lambda: mover.held[delivery] > begun + 2.0, "the lease lasts longer than ack_wait_seconds")
    held.go_on.set()
    mover.join(PATIENCE_SECONDS)
    assert dict(mover.results) == {"done": 1}
    assert world.dispatch.connection.stream_state(world.names.moves)[1].messages == 0  # type: ignore[attr-defined]


def test_a_mover_tells_the_bytes_of_what_it_has_moved(world: ClusterWorld) -> None:
    """``tierctl movers`` said: 29 done; 0 B copied."""
    mover = world.mover("m1", start=False)
    move = mover.engine.move_batch
    mover.engine.move_batch = lambda *given: (  # type: ignore[method-assign]
        replace(outcome, copied_bytes=0) for outcome in move(*given))  # as lfs, which does not say it
    world.begin(mover)
    until(lambda: world.dispatch.trouble() is None, "ready")
    world.submit(*world.files(3, 700), size_bytes=700)
    assert world.pump_until_empty() == {"done": 3}
    assert mover.copied_bytes == 2100


def test_a_move_without_a_result_is_decided_by_the_file(world: ClusterWorld) -> None:
    """The results are lost: at the deadline the leader looks at the files by their FIDs."""
    paths = world.files(3)
    one_dies(world, "publish", *paths)
    with world.lock:
        world.lustre.rename(paths[0], "/d/renamed")
        world.lustre.unlink(paths[1])
    world.clock.ahead = 1000.0
    found = {each.action.path: str(each.result) for each in world.gate.attend()}
    moved = [path for path in paths if found[path] == "done"]
    assert found[paths[1]] == "gone"
    assert len(moved) == 2
    assert not world.gate.under_way


@pytest.mark.parametrize("reported", ["stale", "refused"])
def test_a_file_that_was_moved_is_done_whatever_the_next_mover_reports(world: ClusterWorld, reported: str) -> None:
    """A mover dies after the exchange. Another one gets the message too late, or after a user has written."""
    (path,) = world.files(1)
    one_dies(world, "exchanged", path)
    late = world.mover("late", start=False)
    if reported == "refused":
        world.lustre.write(path, b"more", 100)
    late.stopped = "by hand" if reported == "stale" else ""  # a stopped one begins nothing
    stepping(world, late).join()
    assert late.results == {reported: 1}
    assert [str(each.result) for each in world.ended()] == ["done"]
    assert (world.gate.waiting, world.outcomes()) == (0, {path: "done"})


def test_a_leader_of_an_earlier_generation_cannot_write_the_permit(world: ClusterWorld) -> None:
    permit = json.loads(permit_of(world))
    world.dispatch.connection.bucket(world.names.control).put(  # type: ignore[attr-defined]
        messages.PERMIT, messages.encode(Permit(permit["generation"] + 1, permit["epoch"] + 1)))
    world.dispatch._permit = None  # type: ignore[attr-defined]
    assert "generation 2 is at work" in world.dispatch.trouble().sentence


@pytest.mark.parametrize(("number", "odd"), [
    (b'"act":7', b'"act":%d' % (1 << 63)), (b'"seconds":0.0', b'"seconds":NaN'),
    (b'"seconds":0.0', b'"seconds":Infinity')])
def test_a_result_with_an_odd_number_does_not_end_the_leader(world: ClusterWorld, number: bytes, odd: bytes) -> None:
    """Whoever may publish results can say that they are those of an earlier leader, which nobody can verify."""
    file = messages.FileResult(7, "[0x1:0x1:0x0]", MoveResult.DONE)
    late = ResultMessage("m", world.names.fs, 0, "thief", 1, (file,))
    data = b"\n" + messages.encode(late).replace(number, odd)
    world.connection("mover").publish(world.names.result_subject("thief"), data)
    world.mover("m1")
    world.submit(*world.files(1))
    assert world.pump_until_empty() == {"done": 1}
    assert world.dispatch.counts.refused == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("generation", [0, 1])
def test_a_forged_result_ends_no_act(world: ClusterWorld, generation: int) -> None:
    """A stolen mover key may publish results, but cannot sign them. Those for an earlier leader nobody can verify."""
    (path,) = world.files(1)
    world.mover("m1", start=False)
    handed_over(world, path)
    (message,) = world.dispatch._sent.values()  # type: ignore[attr-defined]
    fid = str(world.lustre.names[path].fid)
    forged = ResultMessage(message.id, world.names.fs, generation, "thief", 1,
                           (messages.FileResult(next(iter(message.moves)), fid, MoveResult.DONE),))
    thief = world.connection("mover")
    thief.publish(world.names.result_subject("thief"), messages.signed(messages.encode(forged), "guessed"))
    until(lambda: not world.gate.pump(world.clock.now() + 0.5)
          and world.dispatch.counts.refused == generation, "it is read")  # type: ignore[attr-defined]
    assert world.gate.under_way == 1


def test_a_leader_that_was_replaced_takes_no_result_of_the_next_one(world: ClusterWorld) -> None:
    """It stood still, and works on until it notices. A doubtful file that it took away would stop nobody."""
    world.journal.publish()
    world.claims.make(f"{world.claim.generation + 1:018d}", "host=leader2")
    theirs = ResultMessage("2-1-1", world.names.fs, 2, "m1", 1,
                           (messages.FileResult(1, "[0x1:0x1:0x0]", MoveResult.DOUBTFUL),))
    data = messages.signed(messages.encode(theirs), "host=leader2")
    world.connection("mover").publish(world.names.result_subject("m1"), data)
    connection, results = world.dispatch.connection, world.names.results  # type: ignore[attr-defined]
    until(lambda: not world.gate.attend() and connection.delivered_sequence(results, messages.RESULTS_CONSUMER),
          "it has seen the result")
    assert connection.stream_state(results)[1].messages == 1


@pytest.mark.parametrize("moved", [True, False])
def test_a_doubtful_result_after_the_deadline_stops_everything(world: ClusterWorld, moved: bool) -> None:
    """The leader has looked at the file, and cannot see what the mover has seen."""
    (path,) = world.files(1)
    publishes = Held("publish")
    world.lose_project_at_exchange = True
    mover = world.mover("m1", publishes, start=False)
    handed_over(world, path)
    stepping(world, mover, publishes)
    if not moved:
        layout, world.lustre.names[path].store.layout = world.lustre.names[path].store.layout, HDD
    world.clock.ahead = 1000.0
    assert [str(each.result) for each in world.gate.attend()] == ["done" if moved else "gave-way"]
    if not moved:
        world.lustre.names[path].store.layout = layout
    publishes.go_on.set()
    until(lambda: not world.gate.attend() and world.outcomes() == {path: "doubtful"}, "the journal has the doubt")
    assert path in world.gate.operating_state.paused


def test_a_mover_that_is_paused_on_its_node_takes_no_message(world: ClusterWorld) -> None:
    """It gave back a thousand files a second, which the leader sent again: each was an act in the journal."""
    world.settings = replace(world.settings, act=ActSettings(pause_file=str(world.folder / "paused")))
    (world.folder / "paused").write_text("disk repair")
    paused = world.mover("paused", start=False)
    world.begin(paused)
    until(lambda: world.dispatch.trouble() and world.dispatch.movers, "it is seen")  # type: ignore[attr-defined]
    assert world.dispatch.trouble().reason == Reason.NO_MOVERS
    world.submit(*world.files(8))
    world.gate.pump(world.clock.now() + 0.5)
    assert (world.gate.waiting, list(world.journal.entries())) == (8, [])
    world.settings = replace(world.settings, act=ActSettings())
    world.mover("works")
    assert world.pump_until_empty() == {"done": 8}
    (world.folder / "paused").unlink()
    paused.describe()
    assert paused.state().threads == 2


class Hanging(ClaimFolder):
    def names(self) -> list[str]:
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize(("claims", "words"), [(ClaimFolder, "not mounted here"), (Hanging, "Input/output error")])
def test_a_mover_without_lustre_leaves_messages_to_others(
        world: ClusterWorld, claims: type[ClaimFolder], words: str) -> None:
    """It reported all files as not begun, and could not sign that: each failed after two deadlines."""
    unmounted = world.mover("unmounted", start=False)
    unmounted.claims = claims(world.folder / "not mounted")
    world.begin(unmounted)
    handed_over(world, *world.files(8))
    until(lambda: words in "".join(world.log), "it has taken a message")
    world.mover("works")
    assert world.pump_until_empty() == {"done": 8}
    assert world.dispatch.counts.refused == world.dispatch.counts.expired == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("others", [True, False])
def test_a_mover_whose_clock_differs_leaves_messages_to_others(world: ClusterWorld, others: bool) -> None:
    """A leader whose clock is late has no others: its files fail, instead of a thousand acts a second."""
    world.settings = replace(world.settings, movers=replace(world.settings.movers, at_once=1))
    early = world.mover("early", start=False)
    early.clock = SimpleClock()
    early.clock.ahead = 120.0
    world.begin(early)
    handed_over(world, *world.files(4))
    until(lambda: early.results, "it has taken a message")
    if others:
        world.mover("works")
    assert world.pump_until_empty()["done" if others else "failed"] == 4
    late = [each.detail for each in world.journal.entries() if each.outcome != Outcome.DONE]
    assert len(late) == (4 if others else 8)
    assert all("deadline of the message has passed (early)" in detail for detail in late)
