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


GROUPS = [",".join(name for number, name in enumerate(NAMES) if number >> bit & 1 == value)
          for bit in range((len(NAMES) - 1).bit_length()) for value in (0, 1)]
"""Each name is in a group, and for each two names there is a group with the first one and without the second one."""


@pytest.mark.parametrize("half", [0, 1])
def test_tierd_works_without_any_one_of_them(half: int) -> None:
    """Taken away in groups: whatever of the rest, or of another group, needs one of them fails."""
    done = subprocess.run([sys.executable, "-m", "tests.without", *GROUPS[half::2]], cwd=ROOT, text=True,
                          capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
