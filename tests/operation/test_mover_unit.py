"""The unit of ``tierd mover``, judged by the tools that read it where it is installed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.units import SYSTEMD, complaints, exposure
from tierd.cluster.process import MOVER_STOP_SECONDS
from tierd.daemon.systemd import BEAT_SECONDS

UNIT = SYSTEMD / "tierd-mover@.service"
MOST_EXPOSURE = 4.0


def settings() -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))


def test_the_unit_is_valid(tmp_path: Path) -> None:
    assert complaints(UNIT, "/opt/lustre-tierd/bin/tierd", tmp_path) == []


def test_the_unit_exposes_little() -> None:
    assert exposure(UNIT) <= MOST_EXPOSURE


def test_a_file_in_progress_is_completed_and_the_watchdog_is_served() -> None:
    assert int(settings()["TimeoutStopSec"]) > MOVER_STOP_SECONDS
    assert int(settings()["WatchdogSec"]) > 2 * BEAT_SECONDS
    assert settings()["ExecStart"].endswith("tierd mover --config /etc/tierd/%i.toml")
