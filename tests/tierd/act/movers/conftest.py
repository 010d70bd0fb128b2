from __future__ import annotations

import pytest

from tests.tierd.act.movers.lease_world import World


@pytest.fixture
def world() -> World:
    return World()
