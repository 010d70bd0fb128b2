"""The unit of ``tierd brake``, judged by systemd's own tools where they are installed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.units import SYSTEMD, complaints, exposure

UNIT = SYSTEMD / "tierd-brake.service"
MOST_EXPOSURE = 3.0


def test_the_unit_is_valid(tmp_path: Path) -> None:
    assert complaints(UNIT, "/opt/lustre-tierd/bin/tierd", tmp_path) == []


def test_the_unit_exposes_little() -> None:
    assert exposure(UNIT) <= MOST_EXPOSURE


def test_a_killed_agent_is_cleaned_up_after_and_started_again() -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    assert settings["ExecStopPost"].endswith("tierd brake --release")
    assert settings["Restart"] == "always"
    assert int(settings["WatchdogSec"]) + int(settings["RestartSec"]) < 30
    assert settings["CapabilityBoundingSet"] == ""
