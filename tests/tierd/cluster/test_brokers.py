"""What happens when servers of NATS are gone, stand still or are full: the leader says so, and nothing is lost."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stack.services import free_ports
from tests.tierd.cluster.broker import Broker, until
from tests.tierd.cluster.cluster_world import ClusterWorld, over_nats
from tests.tierd.cluster.test_standing_by import node
from tierd.cluster.connection import BrokerRefused
from tierd.cluster.messages import Names
from tierd.refusal import Reason


@pytest.fixture
def world(own_broker: Broker, tmp_path: Path) -> Iterator[ClusterWorld]:
    made = over_nats(tmp_path, own_broker, cluster={"timeout_seconds": 0.5})
    yield made
    own_broker.freeze(frozen=False)
    made.close()


def reason(world: ClusterWorld) -> str | None:
    found = world.dispatch.trouble()
    return None if found is None else found.reason


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
def test_nats_vanishes_while_files_move(world: ClusterWorld, own_broker: Broker, kill: bool) -> None:
    """A mover completes the file in hand and begins none. Its results come when NATS is back."""
    vanish, return_ = ((own_broker.kill, own_broker.start) if kill else
                       (own_broker.freeze, lambda: own_broker.freeze(frozen=False)))
    paths = world.files(300)
    until(lambda: reason(world) is None, "ready")
    world.submit(*paths)
    world.gate.pump(world.clock.now() + 0.2)
    vanish()
    until(lambda: reason(world) == Reason.NO_BROKER and not world.lustre.descriptors, "the file in hand is completed")
    moved = sum(world.pool(path) == "flash" for path in paths)
    world.gate.pump(world.clock.now() + 1.0)
    assert sum(world.pool(path) == "flash" for path in paths) == moved
    assert moved < 300
    return_()
    world.pump_until_empty()
    # a mover that had its message again may report files late that another one gave back
    until(lambda: not world.gate.attend() and world.outcomes() == dict.fromkeys(paths, "done"), "the journal has all")
    assert not world.journal.unfinished()


def test_a_full_disk_of_the_server(tmp_path: Path) -> None:
    broker = Broker(tmp_path, store_bytes=100_000)
    world = over_nats(tmp_path, broker)
    try:
        (path,) = world.files(1)
        until(lambda: reason(world) is None, "ready")
        connection = world.dispatch.connection  # type: ignore[attr-defined]

        def full() -> bool:
            with suppress(OSError):
                connection.publish(Names(world.names.fs).journal_subject, b"x" * 20_000)
                return False
            return True

        until(full, "the store is full")
        world.submit(path)
        outcomes = [each for _ in range(5) for each in world.gate.pump(world.clock.now() + 0.5)]
        assert [str(each.result) for each in outcomes] == ["gave-way"], "the journal has an act for each attempt"
        assert reason(world) == Reason.NO_BROKER
        assert not world.dispatch.state().connected
        assert world.gate.waiting == 1
        assert world.pool(path) == "hdd"
    finally:
        world.close()
        broker.kill()


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[Broker]]:
    ports = free_ports(0, 0, 0)
    routes = ", ".join(f'"nats-route://127.0.0.1:{port}"' for port in ports)
    made: list[Broker] = []
    for number, port in enumerate(ports):
        cluster = f'cluster {{ name: t, listen: "127.0.0.1:{port}", routes: [{routes}] }}\n'
        made.append(Broker(tmp_path / "brokers", f"n{number}", cluster))
    yield made
    for each in made:
        each.kill()


def test_one_of_three_servers_may_fail_and_two_may_not(brokers: list[Broker], tmp_path: Path) -> None:
    settings: dict[str, Any] = {"servers": tuple(each.url for each in brokers), "replicas": 3, "timeout_seconds": 2.0,
                                "ack_wait_seconds": 3.0, "deadline_seconds": 30.0}
    world = ClusterWorld(tmp_path, brokers[0].settings(**settings))
    try:
        dispatch = world.nats_dispatch()
        world.gate_with(dispatch)
        until(lambda: reason(world) == Reason.NO_MOVERS, "three servers agree", 60,
              lambda: str(world.dispatch.trouble()))
        for number in range(2):
            world.mover(f"m{number}")
        until(lambda: reason(world) is None, "ready", 30)
        paths = world.files(30)
        world.submit(*paths[:10])
        assert world.pump_until_empty()["done"] == 10
        brokers[0].kill()
        world.submit(*paths[10:20])
        found = world.pump_until_empty()
        assert found["done"] == 10
        connection, standbys = dispatch.connection, world.names.standbys
        brokers[1].kill()
        until(lambda: reason(world) == Reason.NO_BROKER, "without a majority the leader plans nothing", 30)

        def alone() -> bool:
            with suppress(OSError):
                return not connection.call(lambda _: connection.jetstream.stream_info(f"KV_{standbys}")).cluster.leader
            return False

        until(alone, "the server that is left knows of no leader", 60)
        with pytest.raises(BrokerRefused):  # it answers without one, and its keys expire
            connection.bucket(standbys).all()
        standby = node(tmp_path, brokers[2], world.names.fs, "b")
        until(lambda: not standby.step() and not standby.nats_answers, "a standby could not lead", 60)
        assert standby.connection.connected
        standby.close()
        assert reason(world) == Reason.NO_BROKER
        state = dispatch.state()
        assert (state.connected, bool(state.trouble)) == (False, True)  # TierdNatsDown
        world.submit(*paths[20:])
        world.gate.pump(world.clock.now() + 1.0)
        assert all(world.pool(path) == "hdd" for path in paths[20:])
        brokers[1].start()
        until(lambda: reason(world) is None, "the majority is back", 60)
        assert world.pump_until_empty()["done"] == 10
        assert dispatch.state().connected
        assert world.outcomes() == dict.fromkeys(paths, "done")
    finally:
        world.close()
