"""Removal of old records in small portions, and what outlives them: the directories of removed acts.

An act is removed ``[journal] keep_days`` after its end. Acts of any age stay if they are in force as default layouts,
default stripings or mirrors, if they are under way or being undone (recovery needs them), or if their finding holds, is
a case or has waiting moves. The last verdicts on each class of act stay too: later acts are decided by them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from tierd.act.journal.connection import SharedConnection
from tierd.act.journal.entry import to_bytes, to_path
from tierd.act.journal.rates import RateRecords
from tierd.acts import ActKind

PORTION = 250
"""Rows of one transaction: other threads wait for its end."""
PORTION_SECONDS = 1.0
"""Time between two portions of a pass."""
PASS_SECONDS = 3600.0
"""Time between two passes over what is old."""
BY_AGE = ("samples", "time", 90), ("stagings", "ended_at", 30), ("scheduler_jobs", "time", 366)
"""Tables, the column with a time, and the days after it when rows are removed. The time is 0 while a row is needed."""
JUDGEMENTS_USED = 20
"""Verdicts of a class of acts that decide about the next one; they are never removed."""
_DAY = 86400
MAX_STEP_SECONDS = 3600.0
"""Time between two steps of a daemon that runs. If the clock advances by more, it was set."""
MAX_SILENT_SECONDS = 86400.0
"""Age of the newest record at a start. If it is older, tierd did not run for long, or the clock is ahead."""
CONFIRM_SECONDS = 86400.0
"""Time for which the clock must run without a jump before anything is removed again."""
_ENDED = "ifnull(ended_at, 1e18)"


class ActDirectories:
    """Directories that got a default layout or whose files were moved: their files may lie on flash. They are kept
    longer than the acts, because the oldest acts moved the files that are now coldest.
    """

    def __init__(self, db: SharedConnection) -> None:
        self._db = db

    def all(self) -> frozenset[str]:
        return frozenset(to_path(place) for (place,) in self._db.execute("SELECT place FROM act_directories"))

    def note(self, act: int) -> None:
        """Remember the directory whose files an act concerns."""
        for kind, place in self._db.execute(
                "SELECT kind, place FROM actions WHERE id = ? AND kind != 'set-default-striping'", (act,)):
            directory = place if kind == ActKind.SET_DEFAULT_LAYOUT else place.rpartition(b"/")[0] or b"/"
            self._db.execute("INSERT OR IGNORE INTO act_directories VALUES (?)", (directory,))

    def forget(self, path: str) -> None:
        """Forget a directory that was removed, until an act names it again."""
        with self._db.transaction(durable=False):
            self._db.execute("DELETE FROM act_directories WHERE place = ?", (to_bytes(path),))


@dataclass(frozen=True, slots=True)
class _Old:
    """What is old at a moment."""

    now: float
    before: float
    in_use: str
    """Numbers of findings of which nothing is removed, as a list in SQL."""


_Stage = Callable[[_Old], bool]
"""Removes one portion; False if there is no further one."""


class ClockGuard:
    """Decides whether the wall clock can be trusted with the removal of records.

    A clock that jumps a year ahead makes every record look old, and a removed record does not come back when the clock
    is set right. So nothing is removed for :data:`CONFIRM_SECONDS` after a jump. A jump is a step backwards, or of more
    than :data:`MAX_STEP_SECONDS`. At a start, the guard compares the clock with the newest record instead. The journal
    stores the end of the wait, so a restart does not shorten it.
    """

    def __init__(self, db: SharedConnection) -> None:
        self._db = db
        self._last: float | None = None
        self._until = -1e18
        """Time from which the clock is trusted."""

    def trusted(self, now: float) -> bool:
        """Whether records may be removed by this time. Call it in every cycle."""
        if self._jumped(now):
            self._until = now + CONFIRM_SECONDS
            _set_state(self._db, "clock_trusted_from", repr(self._until))
        self._last = now
        return now >= self._until

    def _jumped(self, now: float) -> bool:
        if self._last is not None:
            return not 0 <= now - self._last <= MAX_STEP_SECONDS
        stored = self._db.execute("SELECT value + 0.0 FROM state WHERE name = 'clock_trusted_from'").fetchone()
        if stored is not None:
            self._until = float(stored[0])
            if 0 < self._until - now <= CONFIRM_SECONDS:
                return False  # the wait goes on
        (newest,) = self._db.execute(
            "SELECT max(time) FROM (SELECT max(intended_at) AS time FROM actions UNION ALL "
            "SELECT max(time) FROM findings UNION ALL SELECT max(time) FROM rates)").only()
        return newest is not None and not -MAX_STEP_SECONDS <= now - newest <= MAX_SILENT_SECONDS


class Retention:
    """Removes what is older than the journal keeps, one portion a call. For one thread. Each portion is one
    transaction: a kill in one loses nothing else.
    """

    def __init__(self, db: SharedConnection, rates: RateRecords) -> None:
        self._db = db
        self._stages: tuple[_Stage, ...] = (
            self._aged, lambda old: rates.remove_old(old.now, PORTION), self._acts, self._findings,
            self._judgements)
        self._stage = 0
        self._next_pass_at = -1e18

    def step(self, now: float, keep_seconds: float, in_use: Collection[int] = ()) -> None:
        """Remove one portion; nothing until the next pass once all that is old is removed. ``keep_seconds`` 0 keeps
        acts and findings for ever. ``in_use`` has the numbers of findings that hold or are cases.
        """
        if 0 <= self._next_pass_at - now <= PASS_SECONDS:  # above that, the clock was set back
            return
        old = _Old(now, now - keep_seconds if keep_seconds else -1e18, ", ".join(map(str, in_use)))
        with self._db.transaction(durable=False):  # what a power cut brings back is removed again
            if self._stages[self._stage](old):
                return
        self._stage += 1
        if self._stage == len(self._stages):
            self._stage, self._next_pass_at = 0, now + PASS_SECONDS

    def pause_seconds(self, now: float) -> float:
        left = self._next_pass_at - now
        return left if PORTION_SECONDS < left <= PASS_SECONDS else PORTION_SECONDS

    def _aged(self, old: _Old) -> bool:
        # any() ends at the first table with old rows: one portion for each call
        return any(self._db.execute(
            f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {time} > 0 AND {time} < ? "  # noqa: S608
            f"ORDER BY {time} LIMIT ?)", (old.now - days * _DAY, PORTION)).rowcount > 0 for table, time, days in BY_AGE)

    def _acts(self, old: _Old) -> bool:
        # the highest number stays, because SQLite would give it to the next act
        gone = self._chosen(
            f"SELECT id FROM actions WHERE {_ENDED} < ? AND finding NOT IN ({old.in_use}) AND "  # noqa: S608
            "NOT EXISTS (SELECT 1 FROM waiting_moves WHERE finding = actions.finding) AND outcome != 'undoing' AND NOT "
            "(kind IN ('set-default-layout', 'set-default-striping') AND outcome = 'done') AND NOT (outcome = 'done' "
            "AND layout_after LIKE '%lcm_mirror_count:  2%' AND NOT EXISTS (SELECT 1 FROM actions later WHERE "
            "later.fid = actions.fid AND later.id > actions.id AND later.outcome IN ('done', 'undoing'))) AND "
            f"id < (SELECT max(id) FROM actions) ORDER BY {_ENDED}, id LIMIT ?", old)
        if not gone:
            return False
        self._db.execute(f"DELETE FROM actions WHERE id IN ({gone})")  # noqa: S608
        _set_state(self._db, "removed_before", repr(old.before))  # the complete record begins here
        return True

    def _findings(self, old: _Old) -> bool:
        # the highest number stays, as above
        gone = self._chosen(
            f"SELECT id FROM findings WHERE time < ? AND id NOT IN ({old.in_use}) AND "  # noqa: S608
            "NOT EXISTS (SELECT 1 FROM actions WHERE finding = findings.id) AND "
            "NOT EXISTS (SELECT 1 FROM waiting_moves WHERE finding = findings.id) AND "
            "id < (SELECT max(id) FROM findings) ORDER BY time, id LIMIT ?", old)
        if not gone:
            return False
        self._db.execute(f"DELETE FROM told WHERE finding IN ({gone})")  # noqa: S608
        self._db.execute(f"DELETE FROM findings WHERE id IN ({gone})")  # noqa: S608
        _set_state(self._db, "removed_before", repr(old.before))  # the complete record begins here
        return True

    def _judgements(self, old: _Old) -> bool:
        gone = self._chosen(
            f"SELECT finding FROM judgements old WHERE time < ? AND finding NOT IN ({old.in_use}) AND "  # noqa: S608
            "NOT EXISTS (SELECT 1 FROM findings WHERE id = old.finding) AND (verdict NOT IN ('helped', 'did-not-help') "
            f"OR {JUDGEMENTS_USED} <= (SELECT count(*) FROM (SELECT 1 FROM judgements WHERE kind = old.kind AND "
            "pool = old.pool AND size_bytes = old.size_bytes AND time > old.time AND "
            f"verdict IN ('helped', 'did-not-help') LIMIT {JUDGEMENTS_USED}))) ORDER BY time, finding LIMIT ?", old)
        if gone:
            self._db.execute(f"DELETE FROM judgements WHERE finding IN ({gone})")  # noqa: S608
        return bool(gone)

    def _chosen(self, query: str, old: _Old) -> str:
        """Numbers of the next rows to remove, as a list in SQL; "" if there are none."""
        return ", ".join(str(number) for (number,) in self._db.execute(query, (old.before, PORTION)))


def _set_state(db: SharedConnection, name: str, value: str) -> None:
    db.execute("INSERT INTO state VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value))
