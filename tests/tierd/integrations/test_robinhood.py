"""robinhood's database: a real MariaDB where there is one, and a recorded one for what a real one does not do."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest

from lustre.fid import Fid
from tests.pki import Pki
from tests.tierd.later import raising
from tests.tierd.sense.clocks import SettableClock
from tests.tierd.sense.loopback_server import written
from tierd.clock import SystemClock
from tierd.integrations.robinhood.source import (
    CHECK_SECONDS,
    FILES_QUERY,
    MySqlConnection,
    Robinhood,
    RobinhoodSettings,
)
from tierd.model import Candidate, DirectoryActivity
from tierd.sense.http_client import SourceError

TABLES = """
CREATE TABLE ENTRIES (id varbinary(64) NOT NULL PRIMARY KEY, uid varbinary(127), gid varbinary(127),
 projid int unsigned, size bigint unsigned, blocks bigint unsigned, creation_time int unsigned,
 last_access int unsigned, last_mod int unsigned, last_mdchange int unsigned,
 type enum('symlink','dir','file','chr','blk','fifo','sock'), mode smallint unsigned, nlink int unsigned,
 md_update int unsigned, invalid tinyint(1), fileclass varbinary(1023), class_update int unsigned);
CREATE TABLE NAMES (id varbinary(64), pkn varbinary(40) NOT NULL PRIMARY KEY, parent_id varbinary(64),
 name varbinary(255), path_update int unsigned, KEY parent_id_index (parent_id), KEY id_index (id));
CREATE TABLE VARS (varname varchar(255) NOT NULL PRIMARY KEY, value text);
CREATE USER 'tierd'@'localhost' IDENTIFIED BY 'geheim';
GRANT SELECT ON robinhood_lustre.* TO 'tierd'@'localhost';
"""


def client(socket: str, *more: str) -> list[str]:
    return ["mariadb", "--no-defaults", f"--socket={socket}", "-u", "root", *more]


class Root:
    """The database as its administrator."""

    def __init__(self, socket: str) -> None:
        self.socket = socket

    def run(self, statements: str) -> str:
        done = subprocess.run(client(self.socket, "-N", "robinhood_lustre"), input=statements, text=True,
                              capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def explained(self, statement: str, values: Sequence[Any]) -> list[dict[str, str]]:
        """EXPLAIN, a row each."""
        filled = statement % tuple(f"'{v}'" if isinstance(v, str) else v for v in values)
        done = subprocess.run(client(self.socket, "--batch", "robinhood_lustre"), input=f"EXPLAIN {filled};", text=True,
                              capture_output=True, check=True)
        names, *rows = [line.split("\t") for line in done.stdout.splitlines()]
        return [dict(zip(names, row, strict=True)) for row in rows]


@contextmanager
def mariadb(folder: Path) -> Iterator[Root]:
    """Skips where no server is installed, or none starts."""
    if not all(shutil.which(name) for name in ("mariadbd", "mariadb-install-db", "mariadb")):
        pytest.skip("no MariaDB server on the PATH")
    made = subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={folder}/data", "--skip-test-db",
                           "--force",  # a machine that cannot look up its own name will do
                           "--auth-root-authentication-method=normal", "--user=root"], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"mariadb-install-db: {made.stderr.decode()[-200:]}")
    socket = f"{folder}/socket"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(["mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}/data",
                                   f"--socket={socket}", "--skip-networking", f"--pid-file={folder}/pid",
                                   "--innodb-buffer-pool-size=16M", "--aria-pagecache-buffer-size=8M"],
                                  stdout=log, stderr=log)
    clock = SystemClock()
    until = clock.now() + 60
    try:
        while subprocess.run(client(socket, "-e", "SELECT 1"), capture_output=True, check=False).returncode:
            assert server.poll() is None, (folder / "log").read_text()[-2000:]
            assert clock.now() < until
            clock.wait(0.1)
        root = Root(socket)
        subprocess.run(client(socket, "-e", "CREATE DATABASE robinhood_lustre"), check=True)
        root.run(TABLES)
        yield root
    finally:
        server.terminate()
        server.wait(timeout=60)


NOW = 1_795_000_000
DIRECTORY = Fid(0x200000401, 0x10)
ACTIVITY = DirectoryActivity("train.1001", "/proj/set")
ONE_DIRECTORY: Any = SimpleNamespace(status=lambda _: SimpleNamespace(fid=DIRECTORY))
"""A file system in which each path is that directory."""


class Recorded(MySqlConnection):
    """Answers from rows; ``fault`` is raised instead while it is set."""

    def __init__(self, files: Sequence[Sequence[Any]] = (), ages: Sequence[Sequence[Any]] = ((b"LastScanEndTime",
                 str(NOW - 60).encode()),)) -> None:
        self.files, self.ages = sorted(files, key=lambda row: row[0]), ages
        self.fault: Exception | None = None
        self.requested: list[Sequence[object]] = []

    def query(self, statement: str, values: Sequence[object] = ()) -> Sequence[Sequence[Any]]:
        if self.fault:
            raise self.fault
        if statement == FILES_QUERY:
            _, after, count = values
            self.requested += [values] if count else []
            assert isinstance(after, bytes)
            assert isinstance(count, int)
            return [row for row in self.files if row[0] > after][:count]
        return self.ages

    def close(self) -> None:
        pass


def row(number: int, fid: bytes | None = None, name: bytes | None = None) -> tuple[Any, ...]:
    return (b"%040d" % number, name or b"f%d" % number, fid or b"0x200000402:%#x:0x0" % number, 4096, NOW - 500,
            NOW - 400, NOW - 1000)


def asking(connection: Recorded, settings: RobinhoodSettings | None = None) -> Robinhood:
    made = Robinhood(settings or RobinhoodSettings("db"), lambda: connection, SettableClock(NOW))
    made.refresh()
    return made


def completed(robinhood: Robinhood, activity: DirectoryActivity = ACTIVITY) -> DirectoryActivity:
    (done,) = robinhood.enriched([activity], ONE_DIRECTORY)
    return done


def test_files_are_added_to_the_known_ones_page_by_page() -> None:
    connection = Recorded([row(n) for n in range(1, 1201)])
    known = Candidate(Fid(0x200000402, 7), "/proj/set/renamed", 5.0)
    done = completed(asking(connection), replace(ACTIVITY, candidates=(known,)))
    assert len(done.candidates) == 1200
    assert done.candidates[:2] == (known, Candidate(Fid(0x200000402, 1), "/proj/set/f1", NOW - 400, NOW - 1000))
    assert [values[0] for values in connection.requested] == [b"0x200000401:0x10:0x0"] * 3


def test_a_directory_of_millions_is_not_read_whole() -> None:
    connection = Recorded([row(n) for n in range(1, 2001)])
    done = completed(asking(connection, RobinhoodSettings("db", max_files=700)))
    assert len(done.candidates) == 700


def test_rows_that_name_no_file_of_lustre_are_left_out() -> None:
    odd = [row(1, fid=b"FE00:542095"), row(2, name=b"../etc/passwd"), row(3, name=b"a\nb\xff"), row(4)]
    done = completed(asking(Recorded(odd)))
    assert [c.path for c in done.candidates] == ["/proj/set/a\nb\udcff", "/proj/set/f4"]


@pytest.mark.parametrize(("connection", "words"), [
    (Recorded(ages=()), "never finished a scan"),
    (Recorded(ages=((b"LastScanEndTime", str(NOW - 90 * 3600).encode()),)), "is 90 h old"),
])
def test_a_database_that_is_not_to_be_used_says_why(connection: Recorded, words: str) -> None:
    robinhood = asking(connection)
    assert completed(robinhood) == ACTIVITY
    assert words in robinhood.age.state
    assert robinhood.age.stale


def test_a_server_that_went_away_is_connected_to_again_by_the_next_check() -> None:
    """Directories do not wait for it: each would wait for the whole time limit, and plans with them."""
    connection, clock = Recorded([row(1)]), SettableClock(NOW)
    connected: list[float] = []

    def connect() -> Recorded:
        connected.append(clock.now())
        if connection.fault:
            raise connection.fault
        return connection

    robinhood = Robinhood(RobinhoodSettings("db"), connect, clock)
    robinhood.refresh()
    for fault in ("Lost connection", "not connected"):
        connection.fault = SourceError(fault)
        assert completed(robinhood) == ACTIVITY
    assert robinhood.age.problem == "Lost connection"
    for _ in range(2):
        clock.at += CHECK_SECONDS
        robinhood.refresh()
        assert robinhood.enriched([ACTIVITY, ACTIVITY], ONE_DIRECTORY) == [ACTIVITY, ACTIVITY]
        assert robinhood.age.problem == "not connected"
    connection.fault = None
    clock.at += CHECK_SECONDS
    robinhood.refresh()
    assert connected == [NOW, NOW + 60, NOW + 120, NOW + 180]
    assert len(completed(robinhood).candidates) == 1
    assert robinhood.age.problem == ""


def test_activities_in_several_threads_use_the_connection_in_turn() -> None:
    """Records, facts and plans ask in threads of their own; rows of one would be read by another."""
    used, wait = Lock(), Event().wait

    class Single(Recorded):
        def query(self, statement: str, values: Sequence[object] = ()) -> Sequence[Sequence[Any]]:
            assert used.acquire(blocking=False)
            wait(0.01)
            used.release()
            return super().query(statement, values)

    robinhood = asking(Single([row(1)]))
    with ThreadPoolExecutor(3) as threads:
        plans = [threads.submit(completed, robinhood) for _ in range(9)]
    assert [len(each.result().candidates) for each in plans] == [1] * 9


@pytest.mark.parametrize("fault", [
    RuntimeError("'cryptography' package is required for caching_sha2_password"),  # MySQL 8 without TLS
    AssertionError("Result length not requested length"),  # another server listens there
])
def test_any_fault_of_the_driver_is_a_problem_of_the_source(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    monkeypatch.setattr(pymysql, "connect", raising(fault))
    robinhood = Robinhood(RobinhoodSettings("db"), lambda: MySqlConnection(RobinhoodSettings("db"), {}),
                          SettableClock(NOW))
    robinhood.refresh()
    assert robinhood.age.problem == str(fault)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    with mariadb(tmp_path_factory.mktemp("mariadb")) as root:
        names = [f"('0x200000402:{n:#x}:0x0', sha1('{n}'), '0x200000401:{n % 20 + 0x10:#x}:0x0', 'f{n}')"
                 for n in range(1, 20001)]
        entries = [f"('0x200000402:{n:#x}:0x0', {n}, {NOW - 500}, {NOW - 400}, {NOW - 1000}, 'file', 0)"
                   for n in range(1, 20001)]
        root.run(f"INSERT INTO NAMES (id, pkn, parent_id, name) VALUES {','.join(names)};"
                 "INSERT INTO ENTRIES (id, size, last_mod, last_mdchange, creation_time, type, invalid) VALUES "
                 f"{','.join(entries)}; ANALYZE TABLE NAMES, ENTRIES;"
                 f"INSERT INTO VARS VALUES ('LastScanEndTime', '{NOW - 300}'),"
                 f"('CL_LastCommit_MDT0000', '12:{NOW - 9}.5:{NOW - 2}.1'), ('RootId', '0x200000007:0x1:0x0')")
        yield root


def real(server: Root, folder: Path, **changes: Any) -> Robinhood:
    settings = RobinhoodSettings(
        "robinhood_lustre", socket=server.socket, password_file=written(folder / "pw", "geheim\n")
    )
    settings = replace(settings, **changes)
    made = Robinhood(settings, lambda: MySqlConnection(settings, {}), SettableClock(NOW))
    made.refresh()
    return made


def test_a_real_database(server: Root, tmp_path: Path) -> None:
    robinhood = real(server, tmp_path)
    done = completed(robinhood)
    assert len(done.candidates) == 1000
    assert len({c.fid for c in done.candidates}) == 1000
    assert {c.fid.object_id % 20 for c in done.candidates} == {0}
    assert robinhood.age.state == "9 s old"
    robinhood.close()


def test_queries_use_indexes_and_sort_nothing(server: Root) -> None:
    names, entries = server.explained(FILES_QUERY, ("0x200000401:0x10:0x0", "0" * 40, 500))
    assert (names["key"], entries["key"]) == ("parent_id_index", "PRIMARY")
    assert names["type"] in {"range", "ref"}
    assert entries["type"] == "eq_ref"
    assert "filesort" not in names["Extra"] + entries["Extra"]


def test_the_account_cannot_write_and_the_server_breaks_off(server: Root, tmp_path: Path) -> None:
    robinhood = real(server, tmp_path, statement_seconds=0.2)
    connection = MySqlConnection(robinhood.settings, {})
    with pytest.raises(SourceError, match=r"denied|READ ONLY"):
        connection.query("DELETE FROM VARS")
    with pytest.raises(SourceError, match=r"max_statement_time|interrupted"):
        connection.query("SELECT count(*) FROM NAMES a, NAMES b, NAMES c WHERE a.name < b.name")
    connection.close()


@pytest.mark.parametrize(("change", "back", "words"), [
    ("RENAME TABLE NAMES TO GONE", "RENAME TABLE GONE TO NAMES", "NAMES' doesn't exist"),
    ("ALTER TABLE NAMES RENAME INDEX parent_id_index TO x", "ALTER TABLE NAMES RENAME INDEX x TO parent_id_index",
     "Key 'parent_id_index' doesn't exist"),
    ("ALTER TABLE ENTRIES RENAME COLUMN last_mod TO x", "ALTER TABLE ENTRIES RENAME COLUMN x TO last_mod",
     "Unknown column 'e.last_mod'"),
    ("REVOKE SELECT ON robinhood_lustre.* FROM tierd@localhost",
     "GRANT SELECT ON robinhood_lustre.* TO tierd@localhost", "denied"),
])
def test_a_database_that_cannot_give_rows_is_a_problem_before_a_finding_needs_them(
        server: Root, tmp_path: Path, change: str, back: str, words: str) -> None:
    server.run(change)
    try:
        assert words in real(server, tmp_path).age.problem
    finally:
        server.run(back)


def test_a_wrong_password_and_a_missing_server_are_reported(server: Root, tmp_path: Path, authority: Pki) -> None:
    for changes, words in (({"password_file": written(tmp_path / "bad", "falsch")}, "Access denied"),
                           ({"socket": "", "host": "127.0.0.1", "port": 1}, "Can't connect"),
                           ({"ca_file": str(authority.path("ca.crt"))}, "SSL"),  # that server has none
                           ({"database": "elsewhere"}, "denied")):
        robinhood = real(server, tmp_path, **changes)
        assert completed(robinhood) == ACTIVITY
        assert words in robinhood.age.problem
        assert "falsch" not in robinhood.age.problem
