"""Rows of the journal: an act with the layouts before and after it and its outcome, and a move that waits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from lustre.fid import Fid
from lustre.layout.directory import DefaultStriping, default_of_yaml, default_to_yaml
from lustre.layout.model import Component, Layout
from lustre.layout.yaml import from_yaml, to_yaml
from tierd.act.journal.connection import Row, SharedConnection
from tierd.acts import ActKind, Outcome, Verdict
from tierd.model import Action, Evidence, Finding
from tierd.policies.registry import evidence_of
from tierd.text import printable
from tierd.validators import typed_evidence
from tierd.verify.judgement import Judgement

ENTRY_COLUMNS = ("id, kind, place, layout_before, layout_after, size_bytes, outcome, detail, reason, intended_at, "
                 "dry_run, fid, undoes")
FINDING_COLUMNS = "id, kind, time, aggressor, victim, targets, sentence, evidence, directories, subject, ended_at"
JUDGEMENT_COLUMNS = "finding, time, verdict, usual, contended, after, won_back, low, high"
Default = Layout | DefaultStriping | None
"""A layout of a file or for new files of a directory, or the striping over MDTs for new directories; None for none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One act of the journal."""

    id: int
    kind: ActKind
    place: str
    before: Default
    after: Default
    size_bytes: int
    outcome: Outcome
    detail: str
    reason: str
    intended_at: float
    dry_run: bool = False
    fid: Fid | None = None
    """Of the file or directory: another one with the same name is not touched. None if it was not known."""
    undoes: int | None = None
    """The act that this move undoes."""

    @property
    def layout_before(self) -> Layout | None:
        return self.before if isinstance(self.before, Layout) else None

    @property
    def layout_after(self) -> Layout | None:
        return self.after if isinstance(self.after, Layout) else None


Recorded = tuple[int, Finding, float | None]
"""Number of a finding or an order, itself, and when it ended; None if it holds, or tierd did not see its end."""


def entry_of(row: Row) -> Entry:
    """An act from a row of :data:`ENTRY_COLUMNS`."""
    kind = ActKind(row[1])
    read = to_striping if kind == ActKind.SET_DEFAULT_STRIPING else to_layout
    return Entry(row[0], kind, to_path(row[2]), read(row[3]), read(row[4]), row[5], Outcome(row[6]), row[7], row[8],
                 row[9], bool(row[10]), None if row[11] is None else Fid.parse(row[11]), row[12])


def finding_of(row: Row, *, typed: bool = False) -> Recorded:
    """A finding from a row of :data:`FINDING_COLUMNS`. ``typed``: with the evidence that its policy has."""
    number, kind, time, aggressor, victim, targets, sentence, stored, directories, subject, ended_at = row
    numbers = json.loads(stored)
    evidence = evidence_of(kind, numbers) if typed else typed_evidence(Evidence, numbers)
    return number, Finding(kind, time, aggressor, victim, tuple(json.loads(targets)), sentence=sentence,
                           evidence=evidence, directories=tuple(json.loads(directories)),
                           subject=from_subject(subject)), ended_at


def judgement_of(row: Row) -> Judgement:
    """A verdict from a row of :data:`JUDGEMENT_COLUMNS`."""
    _, time, verdict, usual, contended, after, part, low, high = row
    return Judgement(Verdict(verdict), usual, contended, after, at=time, won_back=part,
                     regained=None if low is None else (part, low, high))


def wanted_default(action: Action) -> Default:
    """What an act gives a directory or a file."""
    return action.striping if action.kind == ActKind.SET_DEFAULT_STRIPING else action.layout


def to_striping(text: str | None) -> DefaultStriping | None:
    return None if text is None else default_of_yaml(text)


def to_text(default: Default) -> str | None:
    if isinstance(default, DefaultStriping):
        return default_to_yaml(default)
    return None if default is None else to_yaml(default)


@lru_cache(maxsize=256)
def wanted_to_text(wanted: Default) -> str | None:
    """A wanted layout as the journal stores it. The files of a plan have the same one, and each its own before."""
    return to_text(wanted)


@lru_cache(maxsize=1024)
def to_layout(text: str | None) -> Layout | None:
    """A layout from the journal. Many acts have the same few, and reading one takes half a millisecond."""
    return None if text is None else from_yaml(text)


def to_bytes(path: str) -> bytes:
    """A path as the journal stores it: names may hold any byte but NUL and the slash."""
    return path.encode("utf-8", "surrogateescape")


def to_path(place: bytes) -> str:
    return place.decode("utf-8", "surrogateescape")


def to_subject(subject: str) -> str | bytes:
    """What a finding is about, for the journal: bytes for a path that is not UTF-8, which SQLite refuses as text."""
    data = to_bytes(subject)
    return subject if data.decode("utf-8", "replace") == subject else data


def from_subject(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else to_path(stored)


MAX_STORED = 100_000
"""Moves, and orders, that are stored: a restart loses those beyond it, and ``tierctl status`` shows their number."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The circumstances under which a move or an order was stored."""

    fs: str
    """Name of the file system."""
    dry_run: bool
    since: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True)
class StoredMove:
    """A move that waited when it was stored, with its pool in place of the layout."""

    action: Action
    finding: int
    stamp: Stamp

    @property
    def path(self) -> str:
        return self.action.path

    @property
    def pool(self) -> str:
        """Destination of the file's first bytes; "" for data on the MDT and for a mirror, which are planned again."""
        return self.action.layout.components[0].pool


class QueueStore:
    """Stores queued moves, so that neither a restart nor a kill loses them. A row holds the requested move without the
    layout: after a restart the layout follows from the present file and settings (:mod:`tierd.act.orders`).
    """

    def __init__(self, db: SharedConnection, maximum: int = MAX_STORED) -> None:
        self._db = db
        self._maximum = maximum
        self._stored = self._count()

    def add(self, actions: Iterable[Action], finding: int, stamp: Stamp) -> None:
        """Store these moves, as far as there is room."""
        rows = [(to_bytes(a.path), finding, json.dumps(a.finding),
                 a.layout.components[0].pool if a.layout.mirror_count == 1 else "", a.size_bytes,
                 None if a.fid is None else str(a.fid), printable(a.reason), stamp.fs, stamp.dry_run, stamp.since)
                for a in actions][: max(0, self._maximum - len(self))]
        self._db.executemany(
            "INSERT OR REPLACE INTO waiting_moves (place, finding, key, pool, size_bytes, fid, reason, fs, dry_run, "
            "since) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self._count()

    def remove(self, paths: Iterable[str]) -> None:
        """Delete the moves of these files: they begin, or were dropped."""
        self._db.executemany("DELETE FROM waiting_moves WHERE place = ?", [(to_bytes(path),) for path in paths])
        self._count()

    def all(self) -> list[StoredMove]:
        """All moves, in the order in which they were added."""
        rows = self._db.execute("SELECT place, finding, key, pool, size_bytes, fid, reason, fs, dry_run, since "
                                "FROM waiting_moves ORDER BY id")
        return [StoredMove(
            Action(ActKind.MIGRATE, Layout((Component(pool=pool),), composite=False), reason, tuple(json.loads(key)),
                   to_path(place.rpartition(b"/")[0] or b"/"), path=to_path(place), size_bytes=size_bytes,
                   fid=None if fid is None else Fid.parse(fid)),
            finding, Stamp(fs, bool(dry_run), since))
                for place, finding, key, pool, size_bytes, fid, reason, fs, dry_run, since in rows]

    def __len__(self) -> int:
        """Number of stored moves. It waits for no transaction of another thread."""
        return self._stored

    def _count(self) -> int:
        with self._db.lock:
            self._stored = int(self._db.execute("SELECT count(*) FROM waiting_moves").only()[0])
        return self._stored
