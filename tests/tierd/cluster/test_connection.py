"""The connection against a real nats-server: what is stored, leased, refused and unknown."""

import ssl
from pathlib import Path
from types import SimpleNamespace

import pytest
from nats.js.errors import KeyNotFoundError

from tests.tierd.cluster.broker import Broker, connected, new_fsname, taken_from, until
from tests.tierd.later import raising
from tierd.cluster.connection import (
    BrokerRefused,
    BrokerUnavailable,
    BrokerUnknown,
    Connection,
    Outgoing,
    WrongRevision,
)
from tierd.config.settings import ClusterSettings


@pytest.fixture
def fs(connection: Connection) -> str:
    """The name of a file system with a stream, which is a queue."""
    found = new_fsname()
    for _ in range(2):  # a declaration may be repeated
        connection.declare_stream(f"S_{found}", f"s.{found}.>", 1)
    return found


def test_many_messages_at_once_have_each_a_result(connection: Connection, fs: str) -> None:
    messages = [Outgoing(f"s.{fs}.a", b"x", str(number)) for number in range(50)]
    *sent, refused = connection.publish_all([*messages, Outgoing(f"nobody.{fs}", b"x")])
    assert ({*map(type, sent)}, type(refused), len(sent)) == ({int}, BrokerRefused, 50)
    assert str(refused).endswith("NATS: no response from stream")


def test_a_message_that_is_given_back_is_delivered_again(connection: Connection, fs: str) -> None:
    connection.declare_consumer(f"S_{fs}", "a", f"s.{fs}.a", at_once=2, ack_wait_seconds=30.0)
    connection.publish(f"s.{fs}.a", b"x")
    taken = taken_from(connection, f"S_{fs}", "a")
    assert connection.extend_leases([taken]) == [taken]
    taken.give_back()
    again = taken_from(connection, f"S_{fs}", "a")
    assert (taken.times_delivered, again.times_delivered) == (1, 2)


def test_keys_are_compared_and_set(connection: Connection) -> None:
    connection.declare_bucket(name := f"B_{new_fsname()}", 1)
    bucket = connection.bucket(name)
    first = bucket.update("leader", b"a", 0)
    bucket.update("leader", b"a2", first)
    for last in (0, first):
        with pytest.raises(WrongRevision):
            bucket.update("leader", b"b", last)
    assert bucket.all() == {"leader": b"a2"}


def test_a_key_that_expires_while_it_is_compared_is_not_set(connection: Connection) -> None:
    async def create(_: float) -> int:
        raise KeyNotFoundError  # as KeyValue.create of nats-py 2.16, which looks at the key that was in the way

    with pytest.raises(WrongRevision):
        connection.call(create)


def test_without_a_server_nothing_is_sent() -> None:
    made = Connection(ClusterSettings(servers=("nats://127.0.0.1:9",), timeout_seconds=1.0), "leader")
    try:
        until(lambda: "refused" in made.trouble.lower() or "failed" in made.trouble, "an attempt has failed")
        with pytest.raises(BrokerUnavailable, match="NATS"):
            made.publish("a", b"")
        assert "connect" in made.trouble
    finally:
        made.close()


def test_a_server_that_stands_still_leaves_the_result_unknown(own_broker: Broker) -> None:
    made = Connection(own_broker.settings(timeout_seconds=0.5), "leader")
    try:
        connected(made)
        made.declare_stream("S", "s.>", 1, work_queue=False)
        own_broker.freeze()
        with pytest.raises(BrokerUnknown, match="unknown"):
            made.publish("s.a", b"1", "id1")
        own_broker.freeze(frozen=False)
        until(lambda: made.connected, "the connection is back")
        until(lambda: made.stream_state("S")[1].messages == 1, "the message is stored all the same")
        assert (made.publish("s.a", b"1", "id1"), made.stream_state("S")[1].messages) == (1, 1)
    finally:
        made.close()


def test_a_fetch_that_runs_out_of_time_on_this_side_found_nothing(connection: Connection) -> None:
    """nats-py on a busy node: the time of a fetch is over before its second request."""
    connection._subscriptions["S", "a"] = SimpleNamespace(fetch=raising(TimeoutError()))  # type: ignore[assignment]
    assert connection.fetch_all("S", "a", 10) == []


def test_a_refusal_of_one_subject_is_none_of_another(tmp_path: Path) -> None:
    """A message of which nothing is known was taken for refused: its files would have been sent again."""
    user = '{user: u, password: p, permissions { publish { deny: ["no.>"] } } }'
    broker = Broker(tmp_path, config=f"accounts {{ A {{ jetstream: enabled, users: [{user}] }} }}\nno_auth_user: u\n")
    made = Connection(broker.settings(timeout_seconds=0.5), "leader")
    try:
        connected(made)
        made.declare_stream("S", "s.>", 1)
        made.notify("no.Hint", b"")
        until(lambda: made._denied, "the server has refused it")
        broker.freeze()
        with pytest.raises(BrokerUnknown):
            made.publish("s.a", b"1")
        broker.freeze(frozen=False)
        connected(made)
        with pytest.raises(BrokerRefused, match="permissions"):
            made.publish("no.Hint", b"")
    finally:
        broker.freeze(frozen=False)
        made.close()
        broker.kill()


def test_a_certificate_that_comes_late_is_used(tmp_path: Path) -> None:
    """It said "not connected yet" until it was started again."""
    missing = tmp_path / "ca.crt"
    made = Connection(ClusterSettings(servers=("tls://127.0.0.1:9",), ca_file=str(missing)), "leader")
    try:
        until(lambda: "No such file" in made.trouble, "it says what is wrong")
        missing.write_text(ssl.DER_cert_to_PEM_cert(ssl.create_default_context().get_ca_certs(binary_form=True)[0]))
        until(lambda: "No such file" not in made.trouble, "it tries again")
    finally:
        made.close()
