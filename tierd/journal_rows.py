"""Rows of the journal, as the reader returns them and the control socket sends them.

The module imports the standard library only, because tierctl imports it through the answers of the control socket.
"""

from __future__ import annotations

from collections.abc import Mapping

from tierd.structs import Struct


class FindingRow(Struct, frozen=True, kw_only=True):
    """A finding or an order in the journal."""

    id: int
    time: float
    """Epoch seconds."""
    kind: str
    aggressor: str
    victim: str
    sentence: str
    evidence: Mapping[str, float | None]
    """Numbers by name, None for infinity; see :func:`tierd.model.evidence_of`."""
    targets: tuple[str, ...]
    directories: tuple[str, ...]
    subject: str


class SameFindingRow(Struct, frozen=True):
    """Another finding about the same problem, earlier or later."""

    id: int
    time: float
    acts: int
    """Number of acts that were done for it."""


class MessageRow(Struct, frozen=True):
    """A sentence that was logged about a finding."""

    time: float
    sentence: str


class JudgementRow(Struct, frozen=True):
    """A verdict on the acts for a finding, with the victim's throughput in bytes per second."""

    finding: int
    time: float
    verdict: str
    usual: float
    """Before the aggressor came."""
    contended: float
    """Beside the aggressor, before the acts."""
    after: float
    """After the acts."""
    regained: tuple[float, float, float] | None = None
    """Part of the loss that the victim has regained, and the ends of its interval of 90%."""
