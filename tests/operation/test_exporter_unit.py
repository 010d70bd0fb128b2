"""The unit file, judged by systemd's own tools where they are installed."""

from __future__ import annotations

import re

import pytest

from httpserver.config import ConfigError, load_web_config
from tests.units import SYSTEMD, complaints, exposure

UNIT = SYSTEMD / "lustre-exporter.service"
MOST_EXPOSURE = 2.5


def test_the_unit_is_valid(tmp_path) -> None:
    assert complaints(UNIT, "/opt/lustre-exporter/bin/lustre-exporter", tmp_path) == []


def test_the_unit_exposes_little() -> None:
    assert exposure(UNIT) <= MOST_EXPOSURE


def test_the_exporter_may_read_and_nothing_else() -> None:
    settings = re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE)
    assert ("AmbientCapabilities", "CAP_DAC_READ_SEARCH") in settings
    assert ("CapabilityBoundingSet", "CAP_DAC_READ_SEARCH") in settings
    assert ("TemporaryFileSystem", "/:ro") in settings
    writable = {"ReadWritePaths", "BindPaths", "StateDirectory", "CacheDirectory", "LogsDirectory", "RuntimeDirectory"}
    assert writable.isdisjoint(name for name, _ in settings)
    # Both would bring the node's files back into sight, over the empty root.
    assert {"DynamicUser", "ProtectSystem"}.isdisjoint(name for name, _ in settings)


def test_the_example_of_a_web_configuration_lacks_its_files_only() -> None:
    with pytest.raises(ConfigError) as caught:
        load_web_config(SYSTEMD / "web.yml")
    assert all("cannot read" in sentence for sentence in caught.value.sentences)
    assert len(caught.value.sentences) == 2


def test_the_drop_in_of_compute_nodes_is_valid(tmp_path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    unit = whole / UNIT.name
    settings = (SYSTEMD / "lustre-exporter-compute.conf").read_text().replace("[Service]\n", "")
    unit.write_text(UNIT.read_text().replace("\n[Install]", f"\n{settings}\n[Install]"))
    assert "CPUSchedulingPolicy=idle" in settings
    assert complaints(unit, "/opt/lustre-exporter/bin/lustre-exporter", tmp_path) == []


def test_the_timer_of_the_textfile_runs_on_all_nodes_at_the_same_time(tmp_path) -> None:
    service = SYSTEMD / "lustre-exporter-textfile.service"
    timer = SYSTEMD / "lustre-exporter-textfile.timer"
    assert complaints(service, "/opt/lustre-exporter/bin/lustre-exporter", tmp_path) == []
    assert complaints(timer, "/opt/lustre-exporter/bin/lustre-exporter", tmp_path) == []
    settings = dict(re.findall(r"^(\w+)=(.*)$", timer.read_text(), re.MULTILINE))
    assert settings["OnCalendar"] == "*-*-* *:*:00"
    assert settings["RandomizedDelaySec"] == "0"
