"""Fixtures of tests.tierd.port, for every test of this folder."""

from collections.abc import Callable

import pytest

from tests.tierd.port import Port, serving

__all__ = ["serving"]


@pytest.fixture
def port(serving: Callable[..., Port]) -> Port:
    return serving()
