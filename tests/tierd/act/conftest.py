from pathlib import Path

import pytest

from tests.tierd.act.gate_world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
