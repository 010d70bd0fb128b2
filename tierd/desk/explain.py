"""Everything the journal knows about one finding or one act."""

from __future__ import annotations

from typing import Any

from lustre.layout.model import explain as layout_words
from tierd.act.guard import REQUEST
from tierd.act.journal import Entry, JournalReader
from tierd.act.orders import SUBMISSION
from tierd.desk.board import View

MOST_ACTS = 20
ORDERED = frozenset({REQUEST, SUBMISSION})
"""What stands among the findings because somebody asked for it: no trouble, which may hold or come again."""


def explained(name: str, journal: JournalReader, view: View) -> dict[str, Any]:
    """``F3`` is a finding, ``17`` an act. Raises ValueError for one that is not in the journal."""
    number = finding_number(name, journal)
    finding = journal.finding(number)
    if finding is None:
        raise ValueError(f"the journal has no finding F{number}; tierctl findings and tierctl history list them")
    now = next((f for f in view.findings if view.numbers.get(f.key) == number), None)
    return {
        "finding": finding, "holds": now is not None, "ordered": finding["kind"] in ORDERED,
        "advice": [{"command": a.command, "where": a.where, "effect": a.effect} for a in now.advice] if now else [],
        "acts": [entry_json(entry) for entry in journal.acts_of(number, MOST_ACTS)],
        **journal.sums.of_finding(number),
        "told": [{"time": time, "sentence": sentence} for time, sentence in journal.messages(number)],
        "judgements": journal.judgements(finding=number),
        "same": [] if finding["kind"] in ORDERED else journal.same_as(number),
    }


def finding_number(name: str, journal: JournalReader) -> int:
    """Number of the finding that is meant. Raises ValueError."""
    letter, digits = name[:1].upper(), name[1:] if name[:1].upper() == "F" else name
    if not (digits.isascii() and digits.isdigit() and len(digits) < 18):
        raise ValueError(f"{name!r} is neither a finding (F3) nor an act (17)")
    if letter == "F":
        return int(digits)
    found = journal.finding_of(int(digits))
    if found is None:
        raise ValueError(f"the journal has no act {digits}; tierctl history lists them")
    return found


def entry_json(entry: Entry) -> dict[str, Any]:
    """An act, for programs."""
    return {
        "id": entry.id, "time": entry.intended_at, "kind": entry.kind, "place": entry.place,
        "size_bytes": entry.size_bytes, "outcome": entry.outcome or "under way", "detail": entry.detail,
        "before": layout_words(entry.layout_before) if entry.layout_before else None,
        "after": layout_words(entry.layout_after) if entry.layout_after else None, "reason": entry.reason,
    }
