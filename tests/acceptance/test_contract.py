"""The mounted file system keeps the contract of the port, with either engine."""

import errno
import os
import time
from pathlib import Path

import pytest

from lustre.errors import Busy, Gone, LustreError
from lustre.layout.model import Layout
from lustre.mounted import MountedFilesystem
from tests.acceptance.site import Site, noise
from tests.contract.port import Ground, PortContract, RefusedError
from tierd.act.movers.moves import Move, Mover, MoveResult
from tierd.refusal import Reason


class Moving(MountedFilesystem):
    """Moves files with an engine."""

    def __init__(self, site: Site, engine: Mover) -> None:
        super().__init__(site.mount, site.library, site.tree)
        self._engine = engine

    def migrate(self, path: str, layout: Layout) -> None:
        for outcome in self._engine.move((Move(path, layout),)):
            if outcome.result in {MoveResult.DONE, MoveResult.ALREADY}:
                return
            if outcome.result is MoveResult.REFUSED:
                raise RefusedError(errno.ECANCELED, outcome.detail, path)
            if outcome.reason == Reason.GONE:
                raise Gone(errno.ENOENT, outcome.detail, path)
            if outcome.result is MoveResult.GAVE_WAY:
                raise Busy(errno.EBUSY, outcome.detail, path)
            raise LustreError(errno.EIO, outcome.detail, path)


class TestMounted(PortContract):
    @pytest.fixture
    def ground(self, site: Site, engine: Mover) -> Ground:
        root = site.directory(f"contract-{time.time_ns()}")
        filesystem = Moving(site, engine)

        def place(path: str) -> Path:
            return Path(site.mount.path + path)

        def make_directory(path: str) -> None:
            site.lfs("mkdir", "-i", "0", str(place(path)))
            filesystem.set_default_layout(path, None)
            filesystem.set_default_striping(path, None)  # lfs mkdir has set one

        def make_file(path: str, size: int) -> None:
            place(path).write_bytes(noise(size, size))
            os.utime(place(path), (1_600_000_000, 1_600_000_000))

        def set_mtime(path: str, mtime: float) -> None:
            os.utime(place(path), (mtime, mtime))

        there = os.path.exists(f"/dev/changelog-{site.mount.fsname}-MDT0000")
        kept = there and site.filesystem.changelog("MDT0000", -1)
        return Ground(filesystem, site.name(root), make_directory, make_file, set_mtime, site.flash,
                      site.hdd, "MDT0000" if kept else "")
