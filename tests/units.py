"""A unit file, judged by systemd's own tools; the test is skipped where they are not installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SYSTEMD = Path(__file__).parents[1] / "systemd"


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Output of systemd-analyze."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)


def complaints(unit: Path, program: str, scratch: Path) -> list[str]:
    """What systemd finds wrong with the unit, were its program there."""
    copy = scratch / unit.name
    copy.write_text(unit.read_text().replace(program, "/bin/true"))
    checked = analyze("verify", "--man=no", str(copy))
    reported = [line for line in checked.stderr.splitlines() if unit.name in line]
    return reported or [checked.stderr] * (checked.returncode != 0)


def exposure(unit: Path) -> float:
    """How much of the system the unit can reach, from 0 to 10."""
    judged = analyze("security", "--offline=true", "--no-pager", str(unit))
    if "unrecognized option" in judged.stderr:
        pytest.skip("this systemd cannot judge a file")
    found = re.search(r"exposure level for \S+: (\d+\.\d)", judged.stdout)
    assert found is not None, judged.stderr
    return float(found[1])
