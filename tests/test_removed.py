"""Policies, integrations and some rooms can be taken away: tierd imports, and the demonstration ends as before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.without import TIERD
from tierd.extensions import COMMANDS as EXTENSIONS
from tierd.integrations.registry import COMMANDS

ROOT = Path(__file__).parents[1]
INTERFACE = {"__init__", "guarded", "protocol", "registry", "runner"}
NAMES = ["tierd.cluster", "tierd.mirrors", *EXTENSIONS,
         *(f"tierd.integrations.{name}" for name in COMMANDS), *sorted(
    f"tierd.policies.{path.stem}" for path in (TIERD / "policies").glob("*.py") if path.stem not in INTERFACE)]


@pytest.mark.parametrize("half", [0, 1])
def test_tierd_works_without_any_one_of_them(half: int) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.without", *NAMES[half::2]], cwd=ROOT, text=True,
                          capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
