"""``tierd mover`` as a process wires it: a defect beside the work ends the process, one in the work stops the mover."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.tierd.cluster.broker import Broker, until
from tests.tierd.cluster.broker import shared_broker as shared_broker
from tests.tierd.cluster.cluster_world import over_nats
from tierd.cluster.connection import Connection
from tierd.cluster.mover import Mover
from tierd.cluster.process import run_mover


@pytest.fixture
def mover(shared_broker: Broker, tmp_path: Path):
    world = over_nats(tmp_path, shared_broker, movers=0)
    yield world.mover("m1", start=False), world.connection("mover")
    world.close()


def run(mover: Mover, connection: Connection, end: threading.Event, states: list[str]) -> bool:
    return run_mover(mover, connection, lambda **words: states.append(words.get("STATUS", "")), end, 0.02)


def with_defect(mover: Mover, method: str) -> Mover:
    def broken(_: Mover) -> str:
        raise KeyError("a defect")

    mover.__class__ = type("BrokenMover", (type(mover),), {method: broken})
    return mover


@pytest.mark.parametrize("method", ["describe", "_extend_leases"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_of_a_thread_beside_the_work_ends_the_process(mover, method: str) -> None:
    made, connection = mover
    end = threading.Event()
    assert not run(with_defect(made, method), connection, end, [])
    assert not end.is_set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_in_the_work_stops_the_mover_and_keeps_it_visible(mover) -> None:
    made, connection = mover
    with_defect(made, "step")
    end, states = threading.Event(), list[str]()
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(run(made, connection, end, states)))
    thread.start()
    until(lambda: any("stopped: a defect of the mover" in state for state in states), "it reports that it stopped")
    assert thread.is_alive()
    end.set()
    thread.join(10)
    assert results == [True]
