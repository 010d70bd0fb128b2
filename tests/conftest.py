"""Recordings of a real Lustre file system, unpacked once per run."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CAPTURES = HERE / "captures"
TAPES = HERE / "tapes"

Unpack = Callable[[str], Path]


@pytest.fixture(scope="session")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    """``capture("2.17.57/tree-idle")`` is a folder with ``proc`` and ``sys`` as they were on the recorded node."""
    done: dict[str, Path] = {}

    def unpack(name: str) -> Path:
        if name not in done:
            done[name] = tmp_path_factory.mktemp(name.replace("/", "-"))
            with tarfile.open(CAPTURES / f"{name}.tar.gz") as archive:
                archive.extractall(done[name], filter="data")
        return done[name]

    return unpack


@pytest.fixture(scope="session")
def tape() -> Unpack:
    """``tape("noisy-create-1m")`` is a folder with ``tape.json`` and ``tape.tar.xz``."""
    return lambda name: TAPES / name
