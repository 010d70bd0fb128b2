"""Choosing an engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from lustre.errors import LibraryMissing
from lustre.mounts import Mount
from lustre.tree import Roots, Tree
from tests.lustre.fake_llapi import Handle
from tierd.act.movers import engines
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.lfs import LfsMover

MOUNT = Mount("lustre", "/mnt/lustre")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(Roots.of(tmp_path, tmp_path))


def test_lfs_until_the_other_has_proven_itself(tree: Tree) -> None:
    assert engines.Settings().engine == "lfs"
    assert isinstance(engines.mover(MOUNT, Handle().library(), tree, engines.Settings()), LfsMover)
    assert isinstance(engines.mover(MOUNT, Handle().library(), tree, engines.Settings(engine="lease")), LeaseMover)


def test_without_the_library_nothing_is_mounted(tree: Tree) -> None:
    with pytest.raises(LibraryMissing, match="install"):
        engines.mounted(MOUNT, tree, engines.Settings(library="liblustreapi-of-no-release.so.1"))
