"""A nats-server that runs as long as the session, or that a test may kill."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tierd.cluster.broker import Broker, connected
from tierd.cluster.connection import Connection


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One server for all tests that do not disturb it."""
    running = Broker(tmp_path_factory.mktemp("nats"))
    yield running
    running.kill()


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """A server that the test may kill."""
    running = Broker(tmp_path)
    yield running
    running.freeze(frozen=False)
    running.kill()


@pytest.fixture
def connect(shared_broker: Broker) -> Iterator[Callable[..., Connection]]:
    """Makes connections, of a role and to a server."""
    made: list[Connection] = []

    def made_for(role: str = "leader", broker: Broker = shared_broker) -> Connection:
        made.append(Connection(broker.settings(), role))
        connected(made[-1])
        return made[-1]

    yield made_for
    for each in made:
        each.close()


@pytest.fixture
def connection(connect: Callable[..., Connection]) -> Connection:
    """That of a leader."""
    return connect()
