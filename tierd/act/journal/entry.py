"""One act as a row of the journal: the layout before, the layout wanted, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lustre.fid import Fid
from lustre.layout.directory import DefaultStriping, default_of_yaml, default_to_yaml
from lustre.layout.model import Layout
from lustre.layout.yaml import from_yaml, to_yaml
from tierd.act.journal.connection import Row
from tierd.acts import ActKind, Outcome

ENTRY_COLUMNS = ("id, kind, place, layout_before, layout_after, size_bytes, outcome, detail, reason, intended_at, "
                 "dry_run, fid, undoes")


@dataclass(frozen=True, slots=True)
class Entry:
    """One act of the journal."""

    id: int
    kind: ActKind
    place: str
    layout_before: Layout | None
    layout_after: Layout | None
    size_bytes: int
    outcome: Outcome
    detail: str
    reason: str
    intended_at: float
    dry_run: bool = False
    fid: Fid | None = None
    """Of the file or directory: another one with the same name is not touched. None if it was not known."""
    striping_before: DefaultStriping | None = None
    striping_after: DefaultStriping | None = None
    """Default striping of a directory over MDTs, if the act is about it; then it has no layouts."""
    undoes: int | None = None
    """The act that this move undoes."""


def entry_of(row: Row) -> Entry:
    """An act from a row of :data:`ENTRY_COLUMNS`."""
    kind = ActKind(row[1])
    striped = kind == ActKind.SET_DEFAULT_STRIPING
    layouts = (None, None) if striped else (to_layout(row[3]), to_layout(row[4]))
    return Entry(row[0], kind, to_path(row[2]), *layouts,
                 row[5], Outcome(row[6]), row[7], row[8], row[9], bool(row[10]),
                 None if row[11] is None else Fid.parse(row[11]),
                 to_striping(row[3]) if striped else None, to_striping(row[4]) if striped else None, row[12])


def striping_text(striping: DefaultStriping | None) -> str | None:
    return None if striping is None else default_to_yaml(striping)


def to_striping(text: str | None) -> DefaultStriping | None:
    return None if text is None else default_of_yaml(text)


def to_text(layout: Layout | None) -> str | None:
    return None if layout is None else to_yaml(layout)


@lru_cache(maxsize=256)
def wanted_to_text(layout: Layout) -> str | None:
    """A wanted layout as the journal stores it. The files of a plan have the same one, and each its own before."""
    return to_text(layout)


@lru_cache(maxsize=1024)
def to_layout(text: str | None) -> Layout | None:
    """A layout from the journal. Many acts have the same few, and reading one takes half a millisecond."""
    return None if text is None else from_yaml(text)


def to_bytes(path: str) -> bytes:
    """A path as the journal stores it: names may hold any byte but NUL and the slash."""
    return path.encode("utf-8", "surrogateescape")


def to_path(place: bytes) -> str:
    return place.decode("utf-8", "surrogateescape")
