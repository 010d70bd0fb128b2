"""The compose file: what it mounts is there, and Prometheus takes its settings with the rules where they will be."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.servers import program

ROOT = Path(__file__).parents[2]
HERE = ROOT / "packaging" / "containers"
COMPOSE: dict[str, Any] = yaml.safe_load((HERE / "compose.yml").read_text(encoding="utf-8"))


def mounts() -> list[tuple[str, str]]:
    """Folders and files of the source, and where they are mounted."""
    every = [volume.split(":") for service in COMPOSE["services"].values()
             for volume in service["volumes"] if isinstance(volume, str) and volume.startswith(".")]
    return [(volume[0], volume[1]) for volume in every]


def test_all_mounted_files_exist() -> None:
    assert len(mounts()) > 5
    assert [source for source, _ in mounts() if not (HERE / source).exists()] == []


def test_prometheus_takes_its_settings(tmp_path: Path) -> None:
    for source, target in mounts():
        if target.startswith("/etc/prometheus"):
            given, place = HERE / source, tmp_path / target.removeprefix("/etc/prometheus/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(given, place) if given.is_dir() else shutil.copy(given, place)
    checked = subprocess.run([program("promtool"), "check", "config", str(tmp_path / "prometheus.yml")],
                             capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "rules found" in checked.stdout


def test_grafana_finds_its_first_board() -> None:
    home = Path(COMPOSE["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    source = next(source for source, target in mounts() if target == str(home.parent))
    assert (HERE / source / home.name).is_file()


@pytest.mark.parametrize("text", ["privileged", "/var/run/docker.sock"])
def test_no_container_controls_the_node(text: str) -> None:
    assert text not in (HERE / "compose.yml").read_text(encoding="utf-8")
