"""What the releases of the client and of all metadata targets can do: layouts, archives, quotas of pools."""

import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lustre.filesystem import HsmFlags
from lustre.mounted import NEWEST_MIRROR_STAYS, archives_follow_swaps, copies_by_fid, oldest_release, read_quota
from lustre.mounted_calls import MountedCalls
from lustre.mounts import Mount
from lustre.parameters import Roots, Tree
from tests.conftest import Unpack
from tests.lustre.fake_llapi import Handle


@pytest.fixture
def root(capture: Unpack, tmp_path: Path) -> Path:
    whole = capture("2.17.57/tree-idle")
    for name in ("sys/kernel/debug/lustre/mdc", "sys/fs/lustre/mdc"):
        shutil.copytree(whole / name, tmp_path / name)
    shutil.copy(whole / "sys/fs/lustre/version", tmp_path / "sys/fs/lustre")
    return tmp_path


def notifies(root: Path, fsname: str = "lustre") -> bool:
    return archives_follow_swaps(Tree(Roots.of(root / "proc", root / "sys")), fsname)


def imports(root: Path) -> list[Path]:
    return sorted(root.glob("sys/kernel/debug/lustre/mdc/*/import"))


def test_the_recorded_release_does(root: Path) -> None:
    assert len(imports(root)) == 2
    assert notifies(root)
    assert not notifies(root, "other")
    tree = Tree(Roots.of(root / "proc", root / "sys"))
    assert copies_by_fid(tree, Mount("lustre", "/mnt"))
    assert not copies_by_fid(tree, Mount("lustre", "/mnt", "/home")), "where a subdirectory is mounted"


def test_the_oldest_mdt_decides_whether_the_newest_mirror_stays(root: Path) -> None:
    path, tree = imports(root)[1], Tree(Roots.of(root / "proc", root / "sys"))
    for release, stays in ((b"2.15.0.0", True), (b"2.14.0.0", False)):
        path.write_bytes(re.sub(rb"target_version: [\d.]+", b"target_version: " + release, path.read_bytes()))
        assert (oldest_release(tree, "lustre") >= NEWEST_MIRROR_STAYS) == stays


@pytest.mark.parametrize(("target", "client", "does"), [
    *((release, b"2.17.57\n", False) for release in (b"2.15.8.0", b"2.9.99.0", b"1.16.0.0", b"", b"x")),
    *((b"2.17.57.62", release, False) for release in (b"2.15.8\n", b"what\n", None)),
    (b"2.17.57.62", b"2.16.0\n", True)])
def test_archives_are_notified_if_the_client_and_all_targets_can(
        root: Path, target: bytes, client: bytes | None, does: bool) -> None:
    path, place = imports(root)[1], root / "sys/fs/lustre/version"
    path.write_bytes(path.read_bytes().replace(b"target_version: 2.17.57.62", b"target_version: " + target))
    place.unlink()
    if client is not None:
        place.write_bytes(client)
    assert notifies(root) is does


@pytest.mark.parametrize(("flags", "notified", "behind"), [
    (HsmFlags.NONE, False, False), (HsmFlags.ARCHIVED, True, False), (HsmFlags.ARCHIVED, False, True),
])
def test_only_archived_copies_are_left_behind(tmp_path: Path, flags: HsmFlags, notified: bool, behind: bool) -> None:
    def hsm(descriptor: int, state: object) -> int:
        state._obj.states = flags.value  # type: ignore[attr-defined]
        return 0

    calls = MountedCalls(Handle(llapi_hsm_state_get_fd=hsm).library(), str(tmp_path), lambda: notified)
    assert calls.hsm(3).left_behind is behind


@pytest.mark.parametrize(("mdts", "answer", "found"), [
    (b"2.12.9.0", -14, 0),  # the MDT does not know the request
    (b"2.12.9.0", -524, 0),  # a client of 2.12 or 2.13 does not
    (b"2.15.8.0", -524, None), (b"", -14, None),
    (b"2.15.8.0", 0, 7), (b"2.12.9.0", 0, 7),  # of a vendor
])
def test_a_release_without_quotas_of_pools_limits_none(root: Path, mdts: bytes, answer: int, found: int | None) -> None:
    def quotactl(mount: bytes, query: Any) -> int:
        query._obj.used_bytes = 7
        return answer if query._obj.pool else 0

    for path in imports(root):
        path.write_bytes(re.sub(rb"target_version: [\d.]+", b"target_version: " + mdts, path.read_bytes()))
    library, tree = Handle(llapi_quotactl=quotactl).library(), Tree(Roots.of(root / "proc", root / "sys"))
    read = partial(read_quota, library, tree, Mount("lustre", "/mnt"), 0, 1001)
    assert read("").used_bytes == 7
    if found is None:
        with pytest.raises(OSError, match="too old to tell quotas of pools"):
            read("flash")
    else:
        assert read("flash").used_bytes == found
