"""Files that were there before anybody listened, from robinhood's database (version 3, MariaDB or MySQL), read only.

Its rows are hints: they are as old as its last look, and of a composite layout robinhood 3 keeps only the component
that was instantiated last. So nothing of them is believed: a file that is to move is looked at again, by its FID, size
and layout. What the database gives is which files to look at.

Queries go by indexes alone: names of a directory by ``NAMES.parent_id`` (an index of InnoDB holds the primary key
``pkn`` as well, so pages are read in its order without sorting), entries by ``ENTRIES.id``. None is on size or time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Protocol

from annotated_types import Ge, Gt, Lt

from lustre.fid import Fid
from tierd.clock import Clock
from tierd.model import DirectoryActivity
from tierd.sense.access import SourceError
from tierd.sense.ages import SourceAge
from tierd.sense.robinhood_rows import candidates, name_of, text, told_at

PAGE_ROWS = 500
LOOK_SECONDS = 60.0
"""Between two looks at how old the database is."""
FILES = (
    "SELECT n.pkn, n.name, n.id, e.size, e.last_mod, e.last_mdchange, e.creation_time, e.last_access"
    " FROM NAMES n FORCE INDEX (parent_id_index) JOIN ENTRIES e ON e.id = n.id"
    " WHERE n.parent_id = %s AND n.pkn > %s AND e.type = 'file' AND COALESCE(e.invalid, 0) = 0 ORDER BY n.pkn LIMIT %s"
)
"""One page of the files of a directory."""
AGES = "SELECT varname, value FROM VARS WHERE varname LIKE 'LastScan%' OR varname LIKE 'CL\\_LastCommit%'"
COLUMNS = "SHOW COLUMNS FROM ENTRIES"
NEEDED = frozenset({"id", "size", "last_mod", "last_mdchange", "creation_time", "last_access", "type",
                    "invalid"})


@dataclass(frozen=True)
class Settings:
    """Where the database is. Grant ``SELECT`` on it to an account of its own, and nothing else."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    database: str = ""
    """``robinhood_lustre``. Empty: it is not asked."""
    host: str = "localhost"
    port: Annotated[int, Gt(0), Lt(65536)] = 3306
    socket: str = ""
    """Of a server on this node, in place of host and port."""
    user: str = "tierd"
    password_file: str = ""
    password_env: str = ""
    ca_file: str = ""
    """Certificates (PEM) that sign the server's; empty: no TLS."""
    most_files: Annotated[int, Gt(0)] = 5000
    """Of one directory, so many at most are asked for."""
    statement_seconds: Annotated[float, Gt(0)] = 5.0
    """The server breaks off a statement that takes longer."""
    stale_seconds: Annotated[float, Ge(0)] = 2 * 86400.0
    """Rows may be as old as this, by the database's own account of its last scan or changelog record."""


class Connection(Protocol):
    """What is needed of a connection of PyMySQL."""

    def query(self, statement: str, values: Sequence[object] = ()) -> Sequence[Sequence[Any]]:
        """All rows. Raises OSError."""

    def close(self) -> None:
        """Hang up."""


@dataclass(slots=True)
class Robinhood:
    """The database, asked when a finding names a directory, and never otherwise."""

    settings: Settings
    connect: Callable[[], Connection]
    clock: Clock
    _checked: bool = False
    _looked_at: float | None = None
    _told_at: float | None = None
    """When what it tells was true: the latest of its own stamps."""
    _trouble: str = ""
    _connection: Connection | None = field(default=None)

    @property
    def age(self) -> SourceAge:
        """The source, as it stands."""
        return SourceAge("robinhood", self._told_at, self.settings.stale_seconds, self._trouble)

    def due(self) -> bool:
        """Whether its age should be looked at again."""
        now = self.clock.now()
        if self._looked_at is not None and 0 <= now - self._looked_at < LOOK_SECONDS:
            return False
        self._looked_at = now
        return True

    def look(self) -> None:
        """See how old the database is, and whether it is the one we know. Trouble is kept, not raised."""
        with suppress(OSError):
            self._asking(self._check)

    def completed(self, activity: DirectoryActivity, directory: Fid) -> DirectoryActivity:
        """The activity with the files the database knows in its directory. Raises OSError."""
        known = {candidate.fid for candidate in activity.candidates}
        known.update(file.fid for file in activity.existing_files)
        found = candidates(self._asking(lambda connection: self._rows(connection, directory)), activity.directory)
        return replace(activity, candidates=(*activity.candidates, *(c for c in found if c.fid not in known)))

    def coldest_first(self, directory: Fid) -> list[str]:
        """Names of the files the database knows in a directory, those first that were not used for longest.

        A hint of where to look: whoever acts reads the times anew. Raises OSError.
        """
        rows = self._asking(lambda connection: self._rows(connection, directory))
        used = [(max(row[7] or 0, row[4] or 0), label) for row in rows if (label := name_of(row[1]))]
        return [label for _, label in sorted(used)]

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _asking(self, ask: Callable[[Connection], Any]) -> Any:
        try:
            if self._connection is None:
                self._connection = self.connect()
                self._checked = False
            if not self._checked:
                self._check(self._connection)
            found = ask(self._connection)
        except (OSError, ValueError, TypeError) as error:
            self._trouble = str(error)
            self.close()
            raise SourceError(f"robinhood: {error}") from error
        self._trouble = ""
        return found

    def _check(self, connection: Connection) -> None:
        columns = {text(row[0]) for row in connection.query(COLUMNS)}
        if not columns >= NEEDED:
            missing = ", ".join(sorted(NEEDED - columns))
            raise SourceError(f"ENTRIES has no column {missing}: not a database of robinhood 3")
        self._told_at = told_at({text(name): text(value) for name, value in connection.query(AGES)})
        now = self.clock.now()
        if self._told_at is None or now - self._told_at > self.settings.stale_seconds:
            old = "never finished a scan" if self._told_at is None else f"is {(now - self._told_at) / 3600:.0f} h old"
            raise SourceError(f"its database {old}; nothing of it is used")
        self._checked = True

    def _rows(self, connection: Connection, directory: Fid) -> list[Sequence[Any]]:
        parent = str(directory).strip("[]").encode()
        found: list[Sequence[Any]] = []
        last: object = b""
        while len(found) < self.settings.most_files:
            rows = connection.query(FILES, (parent, last, min(PAGE_ROWS, self.settings.most_files - len(found))))
            found += rows
            if len(rows) < PAGE_ROWS:
                break
            last = rows[-1][0]
        return found
