"""One act as the journal has it: what was there before, what was to be, and how it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lustre.fid import Fid
from lustre.layout.model import Layout
from lustre.layout.yaml import from_yaml, to_yaml
from tierd.act.kept import to_path

ENTRY_COLUMNS = ("id, kind, place, layout_before, layout_after, size_bytes, ifnull(outcome, ''), ifnull(detail, ''), "
                 "reason, intended_at, dry_run, fid")


@dataclass(frozen=True, slots=True)
class Entry:
    """One act, from the journal."""

    id: int
    kind: str
    place: str
    layout_before: Layout | None
    layout_after: Layout | None
    size_bytes: int
    outcome: str
    """Empty while it is under way, or when tierd died in the middle of it."""
    detail: str
    reason: str
    intended_at: float
    dry_run: bool = False
    fid: Fid | None = None
    """Of the file that was moved, or the directory: another one of that name is not touched. None in old journals."""


def entry_of(row: Sequence[Any]) -> Entry:
    """An act, from a row of these columns."""
    return Entry(row[0], row[1], to_path(row[2]), layout_of(row[3]), layout_of(row[4]),
                 row[5], row[6], row[7], row[8], row[9], bool(row[10]),
                 None if row[11] is None else Fid.parse(row[11]))


def text_of(layout: Layout | None) -> str | None:
    """A layout as the journal keeps it."""
    return None if layout is None else to_yaml(layout)


def layout_of(text: str | None) -> Layout | None:
    """A layout from the journal."""
    return None if text is None else from_yaml(text)
