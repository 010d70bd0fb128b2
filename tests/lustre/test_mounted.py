"""The mounted file system, as far as it can be tried without one: a recorded parameter tree, and plain directories."""

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lustre.errors import Gone, LustreError, NoPath, NotLustre, Stale, Unsupported
from lustre.fid import Fid
from lustre.layout.model import Component, Layout, StripeObject
from lustre.mounted import (
    MountedFilesystem,
    mdts_of,
    oldest_release,
    read_metadata_space,
    read_space,
    refuse_unreachable,
    with_fileset,
)
from lustre.mounted_calls import MountedCalls
from lustre.mounts import Mount, find
from lustre.parameters import Roots, Tree
from tests.conftest import Unpack
from tests.lustre.fake_llapi import Handle, opens

FLASH = Layout((Component(pool="flash"),), composite=False)
ON_MDT = Layout((Component(0, 65536, pattern="mdt", stripe_count=0), Component(65536, None, pool="flash")))
MOUNTS = b"""\
/dev/vdb /mnt/ost0 lustre ro,svname=lustre-MDT0000 0 0
10.0.2.15@tcp:/lustre /mnt/lustre lustre rw,flock 0 0
10.0.2.15@tcp:10.0.2.16@tcp:/scratch/home /mnt/lustre/home lustre ro,noatime 0 0
"""


def numbered(path: bytes, fid: Any) -> int:
    fid._obj.sequence, fid._obj.object_id = 0x200000402, os.lstat(path).st_ino & 0xFFFFFFFF
    return 0


def filesystem(root: Path, tree: Tree, handle: Handle | None = None) -> MountedFilesystem:
    known = handle or Handle(llapi_path2fid=numbered, llapi_layout_file_open=opens)
    mounts = tree.roots.procfs / "self" / "mounts"
    mounts.parent.mkdir(parents=True, exist_ok=True)
    mounts.write_text(f"10.0.2.15@tcp:/lustre {root} lustre rw 0 0\n")
    return MountedFilesystem(Mount("lustre", str(root)), known.library(), tree, devices=str(root))


@pytest.mark.parametrize(("sequence", "whole"), [(0x200000007, True), (0x200000402, False)])
def test_the_fileset_of_a_nodemap_is_a_subdirectory_that_the_mounts_do_not_name(sequence: int, whole: bool) -> None:
    def path2fid(_: bytes, fid: Any) -> int:
        fid._obj.sequence, fid._obj.object_id = sequence, 1
        return 0

    library, mount = Handle(llapi_path2fid=path2fid).library(), Mount("lustre", "/mnt")
    assert (with_fileset(library, mount) == mount) == whole
    assert bool(with_fileset(library, mount).subdirectory) != whole
    assert with_fileset(library, replace(mount, subdirectory="/home")).subdirectory == "/home"


def with_a_note(place: Path) -> None:
    place.touch()
    try:
        os.setxattr(place, "user.note", b"kept")
    except OSError:
        pytest.skip("no extended attributes here")


@pytest.fixture
def tree(capture: Unpack, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    root, procfs = capture("2.17.57/tree-idle"), tmp_path_factory.mktemp("proc")  # with mounts of its own
    (procfs / "fs").symlink_to(root / "proc/fs")
    return Tree(Roots.of(procfs, root / "sys"))


def test_a_path_belongs_to_the_innermost_client_mount() -> None:
    assert find("/mnt/lustre/home/x", MOUNTS) == Mount("scratch", "/mnt/lustre/home", "/home", read_only=True)
    assert find("/mnt/lustre/homes", MOUNTS).fsname == "lustre"
    with pytest.raises(NotLustre, match="mounted: /mnt/lustre, /mnt/lustre/home"):
        find("/mnt/ost0", MOUNTS)


def test_pools_and_room_of_the_recorded_file_system(tmp_path: Path, tree: Tree) -> None:
    mounted = filesystem(tmp_path, tree)
    pools = mounted.pools()
    assert pools["flash"] == ("lustre-OST0000", "lustre-OST0001")
    assert pools["hdd"] == tuple(f"lustre-OST000{n}" for n in range(2, 6))
    space = mounted.space()
    assert sorted(space) == [f"lustre-OST000{n}" for n in range(6)]
    assert all(0 < room.avail_bytes <= room.free_bytes <= room.size_bytes for room in space.values())


def test_a_target_is_full_without_objects(tmp_path: Path, capture: Unpack) -> None:
    """Of 16384 objects and 956 MiB on the recorded flash target."""
    root = Path(shutil.copytree(capture("2.17.57/tree-idle"), tmp_path / "tree", symlinks=True))
    (place,) = root.glob("sys/fs/lustre/osc/lustre-OST0000-osc-ff*")

    def avail_kib() -> int:
        return read_space(Tree(Roots.of(root / "proc", root / "sys")), "lustre")["lustre-OST0000"].avail_bytes >> 10

    for left, expected in ((b"16015\n", 908540), (b"8192\n", 489440), (b"0\n", 0)):
        (place / "filesfree").write_bytes(left)
        assert avail_kib() == expected
    for odd in (b"0\n", b"-1\n", b"none\n"):
        (place / "filestotal").write_bytes(odd)
        assert avail_kib() == 908540
    (place / "filestotal").unlink()
    assert avail_kib() == 908540


def test_targets_that_cannot_be_reached_hide_no_others(tmp_path: Path, capture: Unpack) -> None:
    """Their files give an error: EAGAIN on 2.17 while the server is down."""
    root = Path(shutil.copytree(capture("2.17.57/tree-idle"), tmp_path / "tree", symlinks=True))
    for place in (*root.glob("sys/fs/lustre/osc/lustre-OST0001-osc-ff*"),
                  *root.glob("sys/fs/lustre/mdc/lustre-MDT0000-mdc-ff*")):
        (place / "kbytestotal").unlink()
        (place / "kbytestotal").mkdir()
    tree = Tree(Roots.of(root / "proc", root / "sys"))
    assert sorted(read_space(tree, "lustre")) == [f"lustre-OST000{n}" for n in (0, 2, 3, 4, 5)]
    assert "lustre-MDT0000" not in read_metadata_space(tree, "lustre")


def test_an_mdt_that_was_deactivated_counts_no_more(tmp_path: Path, capture: Unpack) -> None:
    """So the manual removes one. Its device stays, and shows neither space nor release."""
    root = Path(shutil.copytree(capture("2.17.57/tree-idle"), tmp_path / "tree", symlinks=True))
    tree = Tree(Roots.of(root / "proc", root / "sys"))
    (gone,) = root.glob("sys/fs/lustre/mdc/lustre-MDT0001-mdc-ff*")
    (gone / "kbytestotal").unlink()
    for place in root.glob("sys/kernel/debug/lustre/mdc/lustre-MDT0001-mdc-ff*/import"):
        place.unlink()
    assert (mdts_of(tree, "lustre"), oldest_release(tree, "lustre") >= (2, 13)) == (("MDT0000", "MDT0001"), False)
    (gone / "active").write_bytes(b"0\n")
    assert (mdts_of(tree, "lustre"), oldest_release(tree, "lustre") >= (2, 13)) == (("MDT0000",), True)
    assert read_metadata_space(tree, "lustre").keys() == {"lustre-MDT0000"}


def test_the_size_of_a_file_on_an_unreachable_target_is_not_asked_for() -> None:
    """On a real Lustre, a stat of such a file waits until the target is back, and cannot be killed."""
    here, there = (Component(stripe_count=1, objects=(StripeObject(index, Fid(0x100000000, 5)),)) for index in (0, 1))
    down = {1: "lustre-OST0001"}
    refuse_unreachable(None, down, "/a")
    refuse_unreachable(Layout((here,), composite=False), down, "/a")
    with pytest.raises(LustreError, match="lustre-OST0001 cannot be reached"):
        refuse_unreachable(Layout((replace(here, extent_end=65536), replace(there, extent_start=65536))), down, "/a")


def test_status_entries_and_what_lies_outside(tmp_path: Path, tree: Tree) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "file").write_bytes(b"data")
    (tmp_path / "d" / "link").symlink_to("/etc/hosts")
    mounted = filesystem(tmp_path, tree)
    assert sorted(mounted.entries("/d")) == ["file", "link"]
    status = mounted.status("/d/file")
    assert (status.size_bytes, status.is_directory, status.fid.object_id) == (
        4, False, (tmp_path / "d" / "file").stat().st_ino)
    assert mounted.status("/d/link").size_bytes == len("/etc/hosts")
    assert mounted.status("/d").is_directory
    with pytest.raises(FileNotFoundError):
        mounted.status("/nothing")
    for path in ("/d/../../etc/hosts", "d/file", "", "/d/\0", "/d/\ud800"):
        with pytest.raises(NoPath, match="not a path from the root"):
            mounted.status(path)


def test_after_an_unmount_nothing_looks_empty(tmp_path: Path, tree: Tree) -> None:
    """A drain called its target empty: what is below the mount point then is an empty folder of this node."""
    (tmp_path / "file").touch()
    mounted = filesystem(tmp_path, tree)
    entries = mounted.entries("/")
    assert (next(entries), mounted.subdirectories("/")) == ("file", [])
    (tree.roots.procfs / "self" / "mounts").write_text("")
    for directory in ("/", "/looks-removed"):
        with pytest.raises(NotLustre, match="not on a mounted Lustre"):
            mounted.subdirectories(directory)
    with pytest.raises(NotLustre, match="not on a mounted Lustre"):
        list(entries)


def test_a_name_that_other_files_take_again_and_again_is_stale(tmp_path: Path, tree: Tree) -> None:
    (tmp_path / "a").touch()

    def replaced(path: bytes, fid: Any) -> int:
        os.rename(path, path + b".old")
        (tmp_path / "a").touch()
        return 0

    with pytest.raises(Stale):
        filesystem(tmp_path, tree, Handle(llapi_path2fid=replaced)).status("/a")


def test_setting_and_removing_a_default(tmp_path: Path, tree: Tree) -> None:
    handle = Handle(llapi_layout_file_open=opens)
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("d")
    mounted = filesystem(tmp_path, tree, handle)
    mounted.set_default_layout("/d", FLASH)
    assert handle.set_calls() == [("stripe_count_set", (1,)), ("pool_name_set", (b"flash",))]
    mounted.set_default_layout("/d", None, Fid(0, 0))
    for change in (mounted.set_default_layout, mounted.set_default_striping):
        with pytest.raises(Stale, match="another directory"):
            change("/d", None, Fid(1, 2))
    assert len(handle.llapi_layout_file_open.calls) == 2
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        mounted.set_default_layout("/link", FLASH)


def test_changelog_is_read_from_its_device_and_cleared_by_index(tmp_path: Path, tree: Tree) -> None:
    (tmp_path / "changelog-lustre-MDT0001").write_bytes(b"records")
    handle = Handle()
    mounted = filesystem(tmp_path, tree, handle)
    assert mounted.changelog("MDT0001", -1) == b"records"
    with pytest.raises(FileNotFoundError):
        mounted.changelog("MDT0007", 0)
    mounted.clear_changelog("MDT0001", "cl1-lab", 7)
    assert handle.llapi_changelog_clear.calls == [(b"lustre-MDT0001", b"cl1-lab", 7)]


# -- the mover's calls over a plain directory


@pytest.fixture
def calls(tmp_path: Path) -> MountedCalls:
    return MountedCalls(Handle(llapi_layout_file_open=opens).library(), str(tmp_path))


def test_volatile_files_need_lustre_and_the_mdt_of_their_source(tmp_path: Path) -> None:
    handle = Handle(llapi_layout_file_open=opens, llapi_fd2fid=lambda *_: -errno.ENOTTY)
    calls = MountedCalls(handle.library(), str(tmp_path))
    with pytest.raises(ValueError, match="MDT of its source"):
        calls.create_volatile("/a", -1, FLASH, 3)
    for layout in (FLASH, ON_MDT):
        with pytest.raises(NotLustre):
            calls.create_volatile("/a", 0, layout, 3)
    assert os.listdir(tmp_path) == []


def test_the_name_of_a_volatile_file_has_its_mdt_and_its_source_and_is_not_looked_for(tmp_path: Path) -> None:
    """That would be one more request for a name that is not there."""
    (tmp_path / "d").mkdir()
    seen: list[bytes] = []

    def vanishes(path: bytes, flags: int, mode: int, layout: int) -> int:
        seen.append(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)))
        assert flags & os.O_EXCL
        assert mode == 0o600
        Path(os.fsdecode(path)).touch()  # were it looked for, it would be found
        return os.open(tmp_path, os.O_RDONLY)

    calls = MountedCalls(Handle(llapi_layout_file_open=vanishes).library(), str(tmp_path))
    for _ in range(2):
        calls.close(calls.create_volatile("/d/file", 26, ON_MDT, 7))
    assert len(seen) == 2
    directory, name = os.path.split(seen[0])
    assert directory == os.fsencode(tmp_path / "d")
    assert name.startswith(b".\x0c\x13\x14\x12:VOLATILE:001A:")
    assert name.endswith(b":fd=07")


@pytest.mark.parametrize("layout", [FLASH, ON_MDT], ids=["on OSTs", "on the MDT"])
def test_no_name_is_left_where_a_directory_became_a_link_out_of_lustre(tmp_path: Path, layout: Layout) -> None:
    """The owner of a directory may replace it between the check of a file and the creation of its copy."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "mount").mkdir()
    (tmp_path / "mount" / "d").symlink_to(outside)
    handle = Handle(llapi_layout_file_open=opens, llapi_fd2fid=lambda *_: -errno.ENOTTY)
    calls = MountedCalls(handle.library(), str(tmp_path / "mount"))
    opened = len(os.listdir("/proc/self/fd"))
    with pytest.raises(Stale):
        calls.create_volatile("/d/file", 0, layout, 3)
    assert os.listdir(outside) == []
    assert len(os.listdir("/proc/self/fd")) == opened


def test_what_lies_behind_a_link_out_of_the_file_system_is_not_opened(tmp_path: Path, tree: Tree) -> None:
    """The open of a device may do something: a node restarts once /dev/watchdog was opened and closed."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "watchdog").write_text("1")
    (tmp_path / "mount").mkdir()
    (tmp_path / "mount" / "d").symlink_to(tmp_path / "dev")
    asked = Handle(llapi_path2fid=lambda *_: pytest.fail("opened"))
    mounted = filesystem(tmp_path / "mount", tree, asked)
    calls = MountedCalls(Handle().library(), str(tmp_path / "mount"))
    for use in (lambda: mounted.status("/d/watchdog"), lambda: list(mounted.entries("/d")),
                lambda: mounted.subdirectories("/d"), lambda: calls.open_for_reading("/d/watchdog"),
                lambda: calls.open_for_swap("/d/watchdog", direct=False), lambda: calls.project_beside("/d/watchdog")):
        with pytest.raises(Stale, match="leads elsewhere"):
            use()


def test_a_directory_behind_a_link_is_neither_listed_nor_changed(tmp_path: Path, tree: Tree) -> None:
    """Its owner may put the link there after the check of the path, or while a walk has still to come to it."""
    (tmp_path / "victim" / "d").mkdir(parents=True)
    (tmp_path / "mine").symlink_to("victim")
    handle = Handle(llapi_layout_file_open=opens)
    mounted = filesystem(tmp_path, tree, handle)
    for layout in (FLASH, None, Layout((Component(),), composite=False)):
        with pytest.raises(Stale):
            mounted.set_default_layout("/mine/d", layout)
    with pytest.raises(Stale):
        mounted.set_default_striping("/mine/d", None)
    for place in ("/mine/d", "/mine"):
        with pytest.raises(Stale):
            mounted.subdirectories(place)
        with pytest.raises(Stale):
            list(mounted.entries(place))
    assert handle.llapi_layout_file_open.calls == []


def test_reading_and_holes(calls: MountedCalls, tmp_path: Path) -> None:
    place = tmp_path / "sparse"
    with place.open("wb") as file:
        file.truncate(1 << 20)
        file.seek(512 << 10)
        file.write(b"island")
    descriptor = calls.open_for_swap("/sparse", direct=True)
    found = calls.next_data(descriptor, 0)
    assert found is not None
    assert found[0] <= 512 << 10 < found[1]
    assert calls.next_data(descriptor, 1 << 20) is None
    assert calls.read(descriptor, 6, 512 << 10) == b"island"
    assert calls.read(descriptor, 100, 1 << 20) == b""
    assert calls.write(descriptor, bytes(4096), 0) == 4096, "from a buffer that is aligned, as direct I/O wants"
    calls.sync(descriptor)
    calls.set_times(descriptor, 5_000_000_000, 6_000_000_000)
    status = calls.status(descriptor)
    assert (status.atime_ns, status.mtime_ns, status.size_bytes) == (5_000_000_000, 6_000_000_000, 1 << 20)
    calls.drop_cache(descriptor)
    calls.truncate(descriptor, 3)
    assert calls.status(descriptor).size_bytes == 3
    calls.close(descriptor)


def test_symbolic_links_are_not_followed_and_pipes_not_waited_for(calls: MountedCalls, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hosts")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="open: "):
        calls.open_for_reading("/link")
    calls.close(calls.open_for_reading("/pipe"))


def test_attributes_of_the_file_not_of_its_place(calls: MountedCalls, tmp_path: Path) -> None:
    with_a_note(tmp_path / "a")
    descriptor = calls.open_for_reading("/a")
    assert "user.note" in calls.belongings(descriptor).names
    assert calls.belongings(descriptor).pin == b""
    calls.close(descriptor)


def test_the_status_of_a_path_is_read_without_opening_the_file(calls: MountedCalls, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 5000)
    (tmp_path / "link").symlink_to("a")
    status = calls.status_of("/a")
    held_bytes = (tmp_path / "a").stat().st_blocks * 512
    assert (status.size_bytes, status.link_count, status.held_bytes) == (5000, 1, held_bytes)
    assert calls.status_of("/link").size_bytes == 1
    with pytest.raises(Gone):
        calls.status_of("/nothing")
    descriptor = calls.open_for_reading("/a")
    assert calls.size(descriptor) == 5000
    calls.close(descriptor)


@pytest.mark.parametrize(("answer", "there"), [(0, True), (-errno.ENOENT, False)])
def test_only_the_mdt_says_that_a_file_is_gone(tmp_path: Path, answer: int, there: bool) -> None:
    calls = MountedCalls(Handle(llapi_fid2path_at=lambda *_: answer).library(), str(tmp_path))
    assert calls.exists(Fid(0x200000401, 7)) is there
    silent = MountedCalls(Handle(llapi_fid2path_at=lambda *_: -errno.ESHUTDOWN).library(), str(tmp_path))
    with pytest.raises(LustreError):
        silent.exists(Fid(0x200000401, 7))


def test_fids_are_passed_in_the_structure_of_lustre(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def index(descriptor: int, fid: Any, answer: Any) -> int:
        seen.append((fid._obj.sequence, fid._obj.object_id))
        answer._obj.value = 1
        return 0

    calls = MountedCalls(Handle(llapi_get_mdt_index_by_fid=index).library(), str(tmp_path))
    assert calls.mdt_index_of(Fid(0x240000401, 9)) == 1
    assert seen == [(0x240000401, 9)]


def test_an_attribute_that_the_mount_does_not_support_is_not_an_absent_one(tree: Tree, tmp_path: Path) -> None:
    with pytest.raises(Unsupported):
        filesystem(Path("/proc"), tree).xattr("/version", "user.tierd")  # procfs has none, as with nouser_xattr
    with_a_note(tmp_path / "a")
    assert filesystem(tmp_path, tree).xattr("/a", "user.note") == b"kept"
    assert filesystem(tmp_path, tree).xattr("/a", "user.tierd") == b""
    with pytest.raises(Gone):
        filesystem(tmp_path, tree).xattr("/nothing", "user.tierd")
