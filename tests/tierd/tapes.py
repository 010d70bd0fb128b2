"""The tapes of ``tests/tapes``, each unpacked once in a process, and what really happened in them."""

import json
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from tierd.sense import tape as tapes

TAPES = Path(__file__).parent.parent / "tapes"
NAMES = sorted(path.parent.name for path in TAPES.glob("*/tape.json"))
UNPACKED = ExitStack()
"""The unpacked tapes. They stay until the process of the tests ends: several modules use them, in any order."""


def truth(name: str) -> dict[str, Any]:
    """The note of a tape: phases, and what tierd must find."""
    loaded: dict[str, Any] = json.loads((TAPES / name / "tape.json").read_bytes())
    return loaded


@cache
def tape_of(name: str) -> tapes.Tape:
    """A tape, unpacked at the first call."""
    return UNPACKED.enter_context(tapes.opened(TAPES / name))
