"""The unit of ``tierd gather`` and its settings, judged by the tools that read them where they are installed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.units import SYSTEMD, complaints, exposure
from tierd.gather.settings import Settings, load

UNIT = SYSTEMD / "lustre-gather@.service"
MOST_EXPOSURE = 2.0


def test_the_unit_is_valid(tmp_path: Path) -> None:
    assert complaints(UNIT, "/opt/lustre-tierd/bin/tierd", tmp_path) == []


def test_the_unit_exposes_little() -> None:
    assert exposure(UNIT) <= MOST_EXPOSURE


def test_threads_for_all_nodes_fit_into_the_limit_of_the_unit() -> None:
    (tasks,) = re.findall(r"^TasksMax=(\d+)$", UNIT.read_text(), re.MULTILINE)
    assert int(tasks) >= 2 * Settings().threads + 128


def test_what_the_sample_shows_commented_out_is_the_default(tmp_path: Path) -> None:
    text = re.sub(r"^# (\[?\w+\]?)( =|$)", r"\1\2", (SYSTEMD / "lustre-gather.toml").read_text(), flags=re.MULTILINE)
    shown = tmp_path / "shown.toml"
    shown.write_text(text.replace("[access]\n", "[access]\nmax_bytes = 16777216\n").replace(
        '["/etc/lustre-gather/nodes/*.json"]', "[]"))
    assert load(shown) == Settings()
