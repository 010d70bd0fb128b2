"""Rows of the journal that changed, in order, so that followers on other nodes have a copy.

Triggers enter the key of each changed row into a table, in the transaction of the change. The leader publishes the
present content of these rows and forgets the keys once the copy is safe. Content, and not statements, is copied: a row
that is applied twice stays as it is.

Points of curves (``samples``, ``rates``) are not copied: they only draw charts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from tierd.act.journal.connection import JournalLock, SharedConnection, Value, end_triggers, open_journal
from tierd.structs import Struct, packed

BY_ROWID = ("findings", "actions", "positions", "state", "told", "judgements", "waiting_moves", "waiting_orders",
            "stagings", "scheduler_jobs")
"""Copied tables whose rows have a number."""
KEYS: Mapping[str, str] = dict.fromkeys(BY_ROWID, "{0}rowid") | {"act_directories": "{0}place"}
"""Copied tables, each with the expression for the key of a row; ``{0}`` is the row's name."""
QUEUES = ("waiting_moves", "waiting_orders")
"""Tables whose removed rows must not come back: all rows are removed before those that are left are copied again."""
EVERY, ALONE = "", "alone"
"""Instead of the key of one row: all rows of such a table; the end of the rows of a journal that worked alone."""
_TABLES = """
CREATE TABLE IF NOT EXISTS copy_position (one INTEGER PRIMARY KEY, sequence INTEGER);
CREATE TABLE IF NOT EXISTS copied (one INTEGER PRIMARY KEY, sequence INTEGER, stream TEXT, signature BLOB,
    generation INTEGER);
INSERT OR IGNORE INTO copied SELECT 1, sequence, '', x'', 0 FROM copy_position;
"""
"""``copy_position`` is that of release 0.2."""
MAX_ROWS = 400
"""Rows of one message."""
MAX_BYTES = 200_000
"""Of one message, if it has several rows."""


class ChangedRow(Struct, frozen=True):
    """A row as it is now; ``values`` is None if it was deleted."""

    table: str
    key: Any
    """A :data:`Value`, as ``values`` has; msgspec knows no union of text and bytes."""
    values: Mapping[str, Any] | None

    def __post_init__(self) -> None:
        if self.table not in KEYS or not all(isinstance(each, str | int | float | bytes | None)
                                             for each in (self.key, *(self.values or {}).values())):
            raise ValueError("not a row of the journal")


@dataclass(frozen=True, slots=True)
class CopyPosition:
    """The last message that was published or applied: its number, when NATS made its stream, and its signature. If NATS
    has lost its data, or the end of them, another message has this number. What is unknown is empty.
    """

    sequence: int = 0
    stream: str = ""
    signature: bytes = b""
    generation: int = 0
    """Of the newest leader up to it."""


class _Copied:
    """A journal with a position in the stream of its copy."""

    def __init__(self, db: SharedConnection) -> None:
        self._db = db
        db.execute_whole(_TABLES)
        self._columns = {table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")] for table in KEYS}
        with db.transaction():
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'changed_rows'"):
                db.execute("CREATE TABLE changed_rows (seq INTEGER PRIMARY KEY AUTOINCREMENT, name, key)")
                db.execute("INSERT INTO changed_rows SELECT 1, 'state', ? WHERE ?", (
                    ALONE, self.position != CopyPosition()))
            for table in ("removed_by_day", "removed_by_finding"):  # of release 0.2
                db.execute("DELETE FROM changed_rows WHERE name = ?", (table,))
        self.alone = bool(db.execute("SELECT 1 FROM changed_rows WHERE key = ?", (ALONE,)))
        """Whether it worked without a cluster since its position: followers lack what it did."""

    @property
    def position(self) -> CopyPosition:
        row = self._db.execute("SELECT sequence, stream, signature, generation FROM copied").fetchone()
        return CopyPosition(*(row or ()))

    def _set_position(self, at: CopyPosition) -> None:
        self._db.execute("INSERT OR REPLACE INTO copied VALUES (1, ?, ?, ?, ?)", astuple(at))

    def begin_again(self, at: CopyPosition) -> None:
        """Enter every row as changed: the stream may lack rows that this journal has."""
        with self._db.transaction():
            self._db.execute("DELETE FROM changed_rows WHERE key != ?", (ALONE,))
            for table, key in KEYS.items():
                if table in QUEUES:
                    self._db.execute("INSERT INTO changed_rows(name, key) VALUES (?, ?)", (table, EVERY))
                self._db.execute(f"INSERT INTO changed_rows(name, key) SELECT '{table}', {key.format('')} FROM {table}")  # noqa: S608
            self._db.execute("UPDATE changed_rows SET seq = (SELECT max(seq) + 1 FROM changed_rows) WHERE key = ?",
                             (ALONE,))
            self._set_position(at)
        self.alone = False


class JournalChanges(_Copied):
    """The changed rows of the journal that this process writes."""

    def __init__(self, db: SharedConnection) -> None:
        """Creates the triggers."""
        super().__init__(db)
        if self.alone:
            self.begin_again(self.position)
        db.execute("PRAGMA recursive_triggers = ON")  # else a row that INSERT OR REPLACE removes calls no trigger
        with db.transaction():
            for table, key in KEYS.items():
                for event, row in (("INSERT", "NEW."), ("UPDATE", "NEW."), ("DELETE", "OLD.")):
                    db.execute(f"CREATE TRIGGER IF NOT EXISTS copy_{table}_{event} AFTER {event} ON {table} BEGIN "  # noqa: S608
                               f"INSERT INTO changed_rows (name, key) VALUES ('{table}', {key.format(row)}); END")

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM changed_rows").only()[0])

    def next(self, most: int = MAX_ROWS) -> tuple[bytes, int] | None:
        """The oldest changes, packed, each row once, and the number of the last; None if all are published."""
        with self._db.lock:
            changes = list(self._db.execute("SELECT seq, name, key FROM changed_rows ORDER BY seq LIMIT ?", (most,)))
            if not changes:
                return None
            present = self._present({(name, key) for _, name, key in changes})
            while True:
                rows = {(name, key): ChangedRow(name, key, present.get((name, key))) for _, name, key in changes}
                data = packed(list(rows.values()))
                if len(rows) == 1 or len(data) <= MAX_BYTES:  # as nearly always
                    return data, changes[-1][0]
                changes = changes[:len(changes) // 2]

    def _present(self, wanted: set[tuple[str, Value]]) -> dict[tuple[str, Value], Mapping[str, Value]]:
        found: dict[tuple[str, Value], Mapping[str, Value]] = {}
        for table in {table for table, _ in wanted}:
            names, expression = self._columns[table], KEYS[table].format("")
            keys = [key for of, key in wanted if of == table]
            rows = self._db.execute(f"SELECT {expression}, {', '.join(names)} FROM {table} "  # noqa: S608
                                    f"WHERE {expression} IN ({', '.join('?' * len(keys))})", keys)
            found |= {(table, row[0]): dict(zip(names, row[1:], strict=True)) for row in rows}
        return found

    def forget(self, until: int, at: CopyPosition) -> None:
        """The copy has all changes up to a number; they end in this message."""
        # a power cut repeats messages, which changes nothing: a row is applied twice
        with self._db.transaction(durable=False):
            self._db.execute("DELETE FROM changed_rows WHERE seq <= ?", (until,))
            self._set_position(at)


class JournalCopy(_Copied):
    """The journal of a follower: it applies rows, and writes nothing of its own."""

    def __init__(self, path: Path) -> None:
        """Raises OSError if another process has the file, and JournalError if it is not a journal of this format.

        Changes that were not published wait until this process leads again, with what the rows have then: they were
        never confirmed, so no move depended on them.
        """
        with ExitStack() as opened:
            opened.callback(JournalLock(path).close)
            db, _ = open_journal(path)
            opened.callback(db.close)
            super().__init__(db)
            end_triggers(db)
            self.close = opened.pop_all().close

    @property
    def empty(self) -> bool:
        return not self._db.execute("SELECT 1 FROM findings UNION ALL SELECT 1 FROM actions LIMIT 1")

    def apply(self, rows: Iterable[ChangedRow], at: CopyPosition) -> None:
        """Apply the rows of a message, all or none. Columns of a later release are left out."""
        with self._db.transaction(durable=False):
            for row in rows:
                self._apply(row)
            self._set_position(at)

    def _apply(self, row: ChangedRow) -> None:
        if row.values is None:
            every = " OR true" if row.key == EVERY else ""
            self._db.execute(f"DELETE FROM {row.table} WHERE {KEYS[row.table].format('')} = ?{every}", (row.key,))  # noqa: S608
            return
        values = {"rowid": row.key} if row.table in BY_ROWID else {}
        values |= {name: value for name, value in row.values.items() if name in self._columns[row.table]}
        places = ", ".join("?" * len(values))
        self._db.execute(f"INSERT OR REPLACE INTO {row.table} ({', '.join(values)}) VALUES ({places})",  # noqa: S608
                         tuple(values.values()))
