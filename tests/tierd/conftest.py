"""Fixtures for tests of tierd."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tierd.logged import LISTENING
from tests.tierd.tapes import UNPACKED


@pytest.fixture(scope="session", autouse=True)
def remove_unpacked_tapes() -> Iterator[None]:
    """Remove the temporary folders of tapes at the end."""
    with UNPACKED:
        yield


@pytest.fixture(autouse=True)
def stop_listening() -> Iterator[None]:
    """Close the lists of what tierd logs."""
    with LISTENING:
        yield
