"""A connection to robinhood's database with PyMySQL: read only, and no statement for long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tierd.sense.access import SourceError, secret
from tierd.sense.robinhood import Settings

NO_DRIVER = "sense.robinhood needs the package PyMySQL (pip install 'lustre-tierd[robinhood]')"
_SLACK_SECONDS = 2.0


class MySqlConnection:
    """See ``tierd.sense.robinhood.Connection``."""

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        try:
            import pymysql  # noqa: PLC0415 -- needed by those who name a database
        except ImportError:
            raise SourceError(NO_DRIVER) from None
        self._errors: tuple[type[Exception], ...] = (pymysql.MySQLError, OSError, EOFError, ValueError)
        place = {"unix_socket": settings.socket} if settings.socket else {"host": settings.host, "port": settings.port}
        password = secret(settings.password_file, settings.password_env, environment, "password")
        within = settings.statement_seconds + _SLACK_SECONDS
        try:
            self._connection = pymysql.connect(
                user=settings.user, password=password, database=settings.database, use_unicode=False, charset="utf8mb4",
                connect_timeout=int(within) + 1, read_timeout=within, write_timeout=within, autocommit=True,
                ssl={"ca": settings.ca_file} if settings.ca_file else None, local_infile=False, **place)
        except self._errors as error:
            raise SourceError(words(error)) from error
        self._prepare(settings.statement_seconds)

    def _prepare(self, seconds: float) -> None:
        """Read only; statements are broken off by the server, in MariaDB's words or in MySQL's."""
        self.query("SET SESSION TRANSACTION READ ONLY")
        self.query("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
        try:
            self.query(f"SET SESSION max_statement_time = {seconds:f}")
        except SourceError:
            self.query(f"SET SESSION max_execution_time = {int(seconds * 1000)}")

    def query(self, statement: str, values: Sequence[object] = ()) -> Sequence[Sequence[Any]]:
        """All rows. Raises SourceError."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement, tuple(values) or None)
                rows: Sequence[Sequence[Any]] = cursor.fetchall()
                return rows
        except self._errors as error:
            raise SourceError(words(error)) from error

    def close(self) -> None:
        """Hang up."""
        with suppress(Exception):
            self._connection.close()


def words(error: Exception) -> str:
    """What the server or the driver says, without the number alone.

    >>> words(OSError(1045, "Access denied for user 'tierd'"))
    "Access denied for user 'tierd'"
    """
    return str(error.args[1] if len(error.args) > 1 else error) or type(error).__name__
