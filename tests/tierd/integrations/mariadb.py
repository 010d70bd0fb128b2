"""A MariaDB of its own on a socket, with the tables robinhood 3.2 makes: columns and indexes as seen in a real one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tierd.clock import SystemClock

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
