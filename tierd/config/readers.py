"""Settings of ``[reader]``: changelog readers on other nodes, and what the leader takes from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Le
from pydantic import Strict

from tierd.policies.protocol import Table


@dataclass(frozen=True)
class ReaderSettings(Table):
    """Readers of changelogs (``tierd reader``). ``[sense] mdts`` and ``readers`` name the MDTs and their users."""

    enabled: Annotated[bool, Strict()] = False
    """Whether the leader takes changelog records from readers instead of reading the changelogs itself."""
    window_seconds: Annotated[float, Gt(0), Le(60)] = 5.0
    """Time between two tallies of an MDT."""
    lease_seconds: Annotated[float, Ge(5), Le(300)] = 10.0
    """A reader that has not renewed its lease of an MDT for this time loses it to another reader."""
    max_mdts: Annotated[int, Ge(0)] = 0
    """MDTs that one reader reads at most; 0 for no limit. With 40 MDTs and 6 readers: 8, so that one may fail."""
