"""Recordings of a real Lustre file system, unpacked once per run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from lustre.unpack import unpack

HERE = Path(__file__).parent
CAPTURES = HERE / "captures"
TAPES = HERE / "tapes"

IN_MEMORY = Path("/dev/shm")
IN_MEMORY_BYTES = 2 << 30
"""Room there must be: a run needs a quarter of it."""

Unpack = Callable[[str], Path]


def pytest_addoption(parser: pytest.Parser) -> None:
    """What ``pytest -m lustre`` needs to know of the file system it runs on."""
    group = parser.getgroup("lustre", "acceptance on a real Lustre file system (as root, on a client)")
    group.addoption("--lustre-mount", metavar="DIR", help="client mount point; a scratch directory is made there")
    group.addoption("--flash-pool", default="flash", metavar="POOL", help="pool of fast OSTs (default: flash)")
    group.addoption("--hdd-pool", default="hdd", metavar="POOL", help="pool of slow OSTs (default: hdd)")
    group.addoption("--empty-pool", metavar="POOL", help="a pool without targets, to see that it is refused")
    group.addoption("--storm-seconds", type=float, default=120.0, metavar="S", help="length of each storm")
    group.addoption("--fill-flash-pool", action="store_true", help="fill that pool for one test: not in production")
    group.addoption("--quota-user", metavar="NAME", help="user whose block quota one test sets and takes away again")
    group.addoption("--liblustreapi", default="liblustreapi.so.1", metavar="FILE", help="the library")


def pytest_configure(config: pytest.Config) -> None:
    settings.register_profile("calm", deadline=None)  # how long an example takes says nothing on a busy machine
    settings.load_profile("calm")
    config.addinivalue_line("markers", "lustre: needs a real Lustre file system (--lustre-mount)")
    if roomy(IN_MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def roomy(place: Path) -> bool:
    """Whether temporary folders may lie there. On a disk, half of the time would go into waiting for it: the parameter
    files of a simulated cluster are written anew thousands of times."""
    try:
        return os.access(place, os.W_OK) and shutil.disk_usage(place).free >= IN_MEMORY_BYTES
    except OSError:
        return False


@pytest.fixture(scope="session")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    """``capture("2.17.57/tree-idle")`` is a folder with ``proc`` and ``sys`` as they were on the recorded node."""
    done: dict[str, Path] = {}

    def unpacked(name: str) -> Path:
        if name not in done:
            done[name] = tmp_path_factory.mktemp(name.replace("/", "-"))
            unpack(CAPTURES / f"{name}.tar.gz", done[name])
        return done[name]

    return unpacked


@pytest.fixture(scope="session")
def tape() -> Unpack:
    """``tape("noisy-create-1m")`` is a folder with ``tape.json`` and ``tape.tar.xz``."""
    return lambda name: TAPES / name
