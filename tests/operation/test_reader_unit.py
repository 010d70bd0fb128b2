"""The unit of ``tierd reader``, judged by systemd's own tools where they are installed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.units import SYSTEMD, complaints, exposure

UNIT = SYSTEMD / "tierd-reader@.service"
MOST_EXPOSURE = 4.0


def test_the_unit_is_valid(tmp_path: Path) -> None:
    assert complaints(UNIT, "/opt/lustre-tierd/bin/tierd", tmp_path) == []


def test_the_unit_exposes_little() -> None:
    assert exposure(UNIT) <= MOST_EXPOSURE


def test_the_reader_may_write_no_file_and_needs_fewer_capabilities_than_tierd() -> None:
    settings = re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE)
    assert {"ReadWritePaths", "StateDirectory", "RuntimeDirectory"}.isdisjoint(name for name, _ in settings)
    (of_tierd,) = re.findall(r"^CapabilityBoundingSet=(.*)$", (SYSTEMD / "tierd@.service").read_text(), re.MULTILINE)
    assert set(dict(settings)["CapabilityBoundingSet"].split()) < set(of_tierd.split())
