"""Each policy and some rooms can be taken away: tierd imports, and the story of the demonstration ends as before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tierd.policies.without import TIERD

ROOT = Path(__file__).parents[3]
INTERFACE = {"__init__", "protocol", "registry", "runner"}
NAMES = ["tierd.audit", "tierd.cluster", *sorted(
    f"tierd.policies.{path.stem}" for path in (TIERD / "policies").glob("*.py") if path.stem not in INTERFACE)]


@pytest.mark.parametrize("half", [0, 1])
def test_tierd_works_without_any_one_of_them(half: int) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.tierd.policies.without", *NAMES[half::2]], cwd=ROOT, text=True,
                          capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
