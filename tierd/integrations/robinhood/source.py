"""Finds files that are older than the changelog records, in robinhood's database (version 3, MariaDB or MySQL).

tierd only reads the database, and uses its rows as hints about which files to check. They are as old as robinhood's
last update, and robinhood 3 stores only the last instantiated component of a composite layout. tierd checks FID, size
and layout of each file again before a move.

Queries use indexes alone: names of a directory by ``NAMES.parent_id`` (an InnoDB index contains the primary key
``pkn``, so that pages come in its order without sorting), entries by ``ENTRIES.id``. Sizes and times have no index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from tierd.clock import Clock
from tierd.integrations.protocol import Integration, Site, Source
from tierd.model import Candidate, DirectoryActivity, Table
from tierd.sense.freshness import SourceAge
from tierd.sense.http_client import SourceError, read_secret
from tierd.sense.paths import join
from tierd.validators import Seconds

PAGE_ROWS = 500
CHECK_SECONDS = 60.0
"""Interval of the checks of the database's age."""
FILES_QUERY = (
    "SELECT n.pkn, n.name, n.id, e.size, e.last_mod, e.last_mdchange, e.creation_time"
    " FROM NAMES n FORCE INDEX (parent_id_index) JOIN ENTRIES e ON e.id = n.id"
    " WHERE n.parent_id = %s AND n.pkn > %s AND e.type = 'file' AND COALESCE(e.invalid, 0) = 0 ORDER BY n.pkn LIMIT %s"
)
"""One page of the files of a directory."""
AGES_QUERY = "SELECT varname, value FROM VARS WHERE varname LIKE 'LastScan%' OR varname LIKE 'CL\\_LastCommit%'"
Row = Sequence[str | bytes | int | None]
"""One row of a query. Text columns of robinhood are binary."""


@dataclass(frozen=True)
class RobinhoodSettings(Table):
    """Address of the database. Give tierd its own account with the grant ``SELECT`` only."""

    database: str = ""
    """``robinhood_lustre``. Empty: it is not used."""
    host: str = "localhost"
    port: Annotated[int, Gt(0), Lt(65536)] = 3306
    socket: str = ""
    """Unix socket of a server on this node, instead of host and port."""
    user: str = "tierd"
    password_file: str = ""
    password_env: str = ""
    ca_file: str = ""
    """CA certificates (PEM) for the server's certificate; empty: TLS is not required, no certificate is verified."""
    max_files: Annotated[int, Gt(0)] = 5000
    """Maximum number of files of one directory."""
    statement_seconds: Seconds = 5.0
    """Time after which the server aborts a statement."""
    stale_seconds: Annotated[float, Ge(0)] = 2 * 86400.0
    """Maximum age of the rows, by the last scan or changelog record that the database names."""


@dataclass
class Robinhood(Source):
    """The database. tierd queries the directories of findings, and the age of the database."""

    settings: RobinhoodSettings
    connect: Callable[[], MySqlConnection]
    clock: Clock
    _checked_at: float | None = None
    _valid_at: float | None = None
    """Time at which the rows were valid: the newest time stamp in the database."""
    _problem: str = ""
    _connection: MySqlConnection | None = None
    """None while the last check failed."""
    _lock: Lock = field(default_factory=Lock)
    """Activities ask in threads of their own; a connection answers one at a time."""

    @property
    def age(self) -> SourceAge:
        return SourceAge("robinhood", self._valid_at, self.settings.stale_seconds, self.clock.now(), self._problem)

    def refresh(self) -> None:
        """Connect and check the database from time to time: one that is down costs one wait, not one a directory."""
        now = self.clock.now()
        if self._checked_at is None or not 0 <= now - self._checked_at < CHECK_SECONDS:
            self._checked_at = now
            self._asking(None)

    def enriched(self, activities: list[DirectoryActivity], filesystem: Filesystem) -> list[DirectoryActivity]:
        """Activities with files that no changelog record named."""
        return [self._completed(each, filesystem) if each.directory.startswith("/") else each for each in activities]

    def _completed(self, activity: DirectoryActivity, filesystem: Filesystem) -> DirectoryActivity:
        known = {each.fid for each in activity.candidates} | {each.fid for each in activity.existing_files}
        found = candidates(self._files(activity.directory, filesystem), activity.directory)
        return replace(activity, candidates=(*activity.candidates, *(c for c in found if c.fid not in known)))

    def _files(self, directory: str, filesystem: Filesystem) -> Sequence[Row]:
        """The rows of a directory; none if robinhood does not answer, which is shown in :attr:`age`."""
        try:
            return self._asking(filesystem.status(directory).fid)
        except OSError:
            return ()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _asking(self, directory: Fid | None) -> Sequence[Row]:
        """The rows of a directory; none if the database does not answer or is too old. None connects and checks it."""
        with self._lock:
            try:
                if directory is None:
                    self.close()
                    self._connection = self._checked(self.connect())
                elif self._connection is None:
                    return ()
                found = self._rows(self._connection, directory) if directory is not None else ()
            except (OSError, ValueError, TypeError) as error:  # of several, the first says why a connection ended
                self._problem = str(error) if directory is None else self._problem or str(error)
                return ()
            self._problem = ""
            return found

    def _checked(self, connection: MySqlConnection) -> MySqlConnection:
        connection.query(FILES_QUERY, (b"", b"", 0))  # whether tables, columns, index and rights are there
        self._valid_at = valid_at({text(name): text(value) for name, value in connection.query(AGES_QUERY)})
        now = self.clock.now()
        if self._valid_at is None or now - self._valid_at > self.settings.stale_seconds:
            old = "never finished a scan" if self._valid_at is None else f"is {(now - self._valid_at) / 3600:.0f} h old"
            raise SourceError(f"its database {old}; it is not used")
        return connection

    def _rows(self, connection: MySqlConnection, directory: Fid) -> list[Row]:
        parent = str(directory).strip("[]").encode()
        found: list[Row] = []
        last: object = b""
        while len(found) < self.settings.max_files:
            rows = connection.query(FILES_QUERY, (parent, last, min(PAGE_ROWS, self.settings.max_files - len(found))))
            found += rows
            if len(rows) < PAGE_ROWS:
                break
            last = rows[-1][0]
        return found


NO_DRIVER = "sense.robinhood needs PyMySQL 1.2 (pip install PyMySQL)"
_SLACK_SECONDS = 2.0


class MySqlConnection:
    """A connection of PyMySQL. Raises SourceError if it cannot be opened."""

    def __init__(self, settings: RobinhoodSettings, environment: Mapping[str, str]) -> None:
        try:
            import pymysql  # noqa: PLC0415 -- needed by those who name a database
        except ImportError:
            raise SourceError(NO_DRIVER) from None
        place = {"unix_socket": settings.socket} if settings.socket else {"host": settings.host, "port": settings.port}
        password = read_secret(settings.password_file, settings.password_env, environment, "password")
        within = settings.statement_seconds + _SLACK_SECONDS
        try:
            self._connection = pymysql.connect(
                user=settings.user, password=password, database=settings.database, use_unicode=False, charset="utf8mb4",
                connect_timeout=int(within) + 1, read_timeout=within, write_timeout=within, autocommit=True,
                ssl={"ca": settings.ca_file} if settings.ca_file else None, local_infile=False, **place)
        except Exception as error:  # also RuntimeError for a package that the driver lacks
            raise SourceError(error_text(error)) from error
        self._prepare(settings.statement_seconds)

    def _prepare(self, seconds: float) -> None:
        """Make the session read only, and limit its statements: MariaDB and MySQL have different settings for that."""
        self.query("SET SESSION TRANSACTION READ ONLY")
        self.query("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
        try:
            self.query(f"SET SESSION max_statement_time = {seconds:f}")
        except SourceError:
            self.query(f"SET SESSION max_execution_time = {int(seconds * 1000)}")

    def query(self, statement: str, values: Sequence[object] = ()) -> Sequence[Row]:
        """All rows. Raises OSError."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement, tuple(values) or None)
                rows: Sequence[Row] = cursor.fetchall()
                return rows
        except Exception as error:  # of many types, for an odd answer
            raise SourceError(error_text(error)) from error

    def close(self) -> None:
        with suppress(Exception):
            self._connection.close()


def error_text(error: Exception) -> str:
    """The error message of the server or the driver, without its number.

    >>> error_text(OSError(1045, "Access denied for user 'tierd'"))
    "Access denied for user 'tierd'"
    """
    return str(error.args[1] if len(error.args) > 1 else error) or type(error).__name__


_COMMIT = re.compile(r"\d+:(\d+)\.\d+:")


def candidates(rows: Sequence[Row], directory: str) -> Iterator[Candidate]:
    """Candidates from rows of ``FILES_QUERY``. Rows whose id is not a FID (another file system) are skipped."""
    for _, name, identity, _, modified, changed, created in rows:
        try:
            fid = Fid.parse(text(identity))
        except ValueError:
            continue
        if label := name_of(name):
            yield Candidate(fid, join(directory, label), max(seconds_of(modified), seconds_of(changed)),
                            seconds_of(created))


def seconds_of(value: str | bytes | int | None) -> float:
    """Epoch seconds from a time column; 0 for NULL. Raises ValueError if it is not a number."""
    return float(value or 0)


def name_of(name: object) -> str:
    """A file name of any bytes; "" if it cannot be a file name."""
    label = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else str(name)
    return "" if "/" in label or label in {".", ".."} else label


def valid_at(variables: Mapping[str, str]) -> float | None:
    """Time at which the database was valid: the end of the last scan, or the time of the last changelog record.

    >>> valid_at({"LastScanStartTime": "1795000000", "LastScanEndTime": "1795000600"})
    1795000600.0
    >>> valid_at({"CL_LastCommit_MDT0000": "8812:1795000700.500000:1795000901.1"}), valid_at({"LastScanStatus": "done"})
    (1795000700.0, None)

    With several MDTs, the one furthest behind counts. The value of a record is ``index:time:time processed``.
    """
    commits = [stamp[1] for name, value in variables.items() if name.startswith("CL_LastCommit_")
               and (stamp := _COMMIT.match(value))]
    scanned = variables.get("LastScanEndTime", "")
    stamps = [*([min(map(int, commits))] if commits else []), *([int(scanned)] if scanned.isdecimal() else [])]
    return float(max(stamps)) if stamps else None


def text(value: object) -> str:
    """A value of the driver as text. Text columns of robinhood are binary."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def start(settings: RobinhoodSettings, site: Site) -> Robinhood:
    return Robinhood(settings, lambda: MySqlConnection(settings, site.environment), site.clock)


INTEGRATION = Integration(settings=RobinhoodSettings, configured=lambda settings: bool(settings.database), start=start)
