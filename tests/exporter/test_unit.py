"""The unit file, judged by systemd's own tools where they are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from exporter.config import MistakesError
from exporter.web.settings import load

SYSTEMD = Path(__file__).parents[2] / "systemd"
UNIT = SYSTEMD / "lustre-exporter.service"
MOST_EXPOSURE = 2.5

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)


@needs_systemd
def test_the_unit_is_valid(tmp_path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/lustre-tierd/bin/lustre-exporter", "/bin/true"))
    checked = analyze("verify", "--man=no", str(unit))
    told = [line for line in checked.stderr.splitlines() if UNIT.name in line]
    assert (told, checked.returncode) == ([], 0)


@needs_systemd
def test_the_unit_exposes_little() -> None:
    judged = analyze("security", "--offline=true", "--no-pager", str(UNIT))
    if "unrecognized option" in judged.stderr:
        pytest.skip("this systemd cannot judge a file")
    found = re.search(r"exposure level for \S+: (\d+\.\d)", judged.stdout)
    assert found is not None, judged.stderr
    assert float(found[1]) <= MOST_EXPOSURE


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
    with pytest.raises(MistakesError) as caught:
        load(SYSTEMD / "web.yml")
    assert all("cannot read" in sentence for sentence in caught.value.sentences)
    assert len(caught.value.sentences) == 2
