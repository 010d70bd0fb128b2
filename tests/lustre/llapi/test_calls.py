"""The binding names missing functions, raises typed errors, and offers no dangerous call."""

import ctypes
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from lustre.errors import Busy, Gone, LibraryMissing, NotPermitted, Stale, of_errno
from lustre.fid import Fid
from lustre.filesystem import Hsm, HsmFlags, Quota
from lustre.layout.model import Component, Layout
from lustre.layout.xattr import from_xattr
from lustre.llapi.layouts import NO_LAYOUT, open_with_layout
from lustre.llapi.prototypes import SYMBOLS, FidStruct, HsmStateStruct, QuotaStruct
from tests.lustre.fake_llapi import Handle, opens

FID = Fid(0x200000402, 0x14)


def test_a_missing_function_says_which_release_has_it() -> None:
    library = Handle(absent=("llapi_layout_extension_size_set",)).library()
    with pytest.raises(LibraryMissing, match=r"has no llapi_layout_extension_size_set, which came with Lustre 2\.13"):
        library.function("llapi_layout_extension_size_set")


def test_the_library_is_set_to_be_silent() -> None:
    handle = Handle()
    handle.library()
    assert handle.llapi_msg_set_level.calls == [(0,)]


@pytest.mark.parametrize(("number", "kind"), [
    (errno.EBUSY, Busy), (errno.ESTALE, Stale), (errno.EPERM, NotPermitted), (errno.ENOENT, Gone)])
def test_negative_results_become_typed_errors(number: int, kind: type[OSError]) -> None:
    library = Handle(llapi_lease_acquire=lambda descriptor, mode: -number).library()
    with pytest.raises(kind) as caught:
        library.lease(3)
    assert caught.value.errno == number


def test_typed_errors_are_what_python_expects_too() -> None:
    assert isinstance(of_errno(errno.ENOENT, "x"), FileNotFoundError)
    assert isinstance(of_errno(errno.EACCES, "x"), PermissionError)
    assert of_errno(errno.ENOENT, "open", "/a").filename == "/a"


def test_only_a_read_lease_and_only_swap_and_close() -> None:
    handle = Handle()
    library = handle.library()
    library.lease(3)
    library.swap_and_close(3, 4, 5, 6)
    assert handle.llapi_lease_acquire.calls == [(3, 1)]
    assert handle.llapi_fswap_layouts.calls == [(3, 4, 5, 6, 0x10)]
    assert not [symbol.name for symbol in SYMBOLS if "group" in symbol.name]


@pytest.mark.parametrize(("answer", "held"), [(1, True), (2, True), (0, False), (-errno.EBADF, False)])
def test_a_lease_in_unknown_state_counts_as_lost(answer: int, held: bool) -> None:
    assert Handle(llapi_lease_check=lambda descriptor: answer).library().lease_held(3) is held


def test_never_clears_all_records() -> None:
    handle = Handle()
    with pytest.raises(ValueError, match="every record"):
        handle.library().clear_changelog("lustre-MDT0000", "cl1", 0)
    handle.library().clear_changelog("lustre-MDT0000", "cl1", 42)
    assert handle.llapi_changelog_clear.calls == [(b"lustre-MDT0000", b"cl1", 42)]


@pytest.mark.parametrize(("answer", "number", "kind"), [
    (-1, errno.ENOENT, Gone), (-1, errno.EPERM, NotPermitted), (-1, 0, NotPermitted), (-errno.ENOENT, 0, Gone),
    (-errno.ESTALE, errno.ENOENT, Stale),
])
def test_opening_by_fid_answers_in_two_ways(answer: int, number: int, kind: type[OSError]) -> None:
    """2.12 with -1 and ``errno``, later ones with the number itself."""
    def opened(*_: Any) -> int:
        ctypes.set_errno(number)
        return answer

    library = Handle(("llapi_open_by_fid_at",), llapi_open_by_fid=opened).library()
    with pytest.raises(kind, match="llapi_open_by_fid"):
        library.open_fid("/mnt/lustre", FID, 0)
    found = Handle(("llapi_open_by_fid_at",), llapi_open_by_fid=lambda *_: 7).library()
    assert found.open_fid("/mnt/lustre", FID, 0) == 7


def test_no_call_leaves_the_root_of_the_mount_open(tmp_path: Path) -> None:
    """An open root blocks an unmount; after one by force, the library would ask a client that is gone."""
    roots: list[int] = []

    def of_root(root: int, *_: Any) -> int:
        assert os.path.samestat(os.fstat(root), tmp_path.stat())
        roots.append(root)
        return 0

    library = Handle(llapi_fid2path_at=of_root, llapi_open_by_fid_at=of_root).library()
    assert (library.path_of(str(tmp_path), FID), library.open_fid(str(tmp_path), FID, 0)) == ("/", 0)
    for root in roots:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(root)


def test_paths_of_fids_may_hold_any_bytes() -> None:
    def fid2path(device: bytes, fid: bytes, buffer: Any, length: int, record: Any, link: Any) -> int:
        assert (device, fid, link._obj.value) == (b"/mnt/lustre", b"[0x200000402:0x14:0x0]", 2)
        buffer.value = b"dir/uml\xe4ut\n"
        return 0

    before_2_15 = Handle(("llapi_fid2path_at",), llapi_fid2path=fid2path).library()
    assert before_2_15.path_of("/mnt/lustre", FID, 2) == "/dir/uml\udce4ut\n"


def test_structures_have_the_sizes_lustre_gives_them() -> None:
    assert (ctypes.sizeof(FidStruct), ctypes.sizeof(HsmStateStruct)) == (16, 32)
    assert (QuotaStruct.hard_limit_kib.offset, QuotaStruct.obd_type.offset, QuotaStruct.pool.offset) == (48, 120, 176)


def test_hsm_state_and_quota() -> None:
    def hsm(descriptor: int, state: Any) -> int:
        state._obj.states, state._obj.in_progress_state = 0x100D | 0x8000, 1
        return 0

    reported = [0x1, 0x3 | 0x4]

    def quota(mount: bytes, query: Any) -> int:
        assert (query._obj.command, query._obj.type, query._obj.id, query._obj.pool) == (0x80000F, 0, 1001, b"flash")
        query._obj.used_bytes, query._obj.hard_limit_kib, query._obj.block_valid = 5000, 10, reported.pop()
        return 0

    library = Handle(llapi_hsm_state_get_fd=hsm, llapi_quotactl=quota).library()
    assert library.hsm(3) == Hsm(HsmFlags.EXISTS | HsmFlags.RELEASED | HsmFlags.ARCHIVED, True, 0x9000)
    found = library.quota("/mnt/lustre", 0, 1001, "flash")
    assert found == Quota(5000, 0, 10240)
    assert found.room_bytes() == 5240
    assert not library.quota("/mnt/lustre", 0, 1001, "flash").whole  # some target did not say what is used
    assert Quota(5000, 0, 0).room_bytes() is None


RECORDED = Path(__file__).parents[2] / "captures/2.17.57/layouts/c1-flash.lustre.lov.hex"


@pytest.mark.parametrize(("layout", "calls"), [
    (Layout((Component(0, 2 << 20, pool="flash"), Component(2 << 20, None, "hdd", -1, 1 << 20))), [
        ("comp_add", ()),
        ("comp_extent_set", (0, 2 << 20)), ("comp_extent_set", (2 << 20, (1 << 64) - 1)),
        ("stripe_count_set", (1,)), ("stripe_count_set", (0x1000000000000003,)),
        ("stripe_size_set", (1 << 20,)),
        ("pool_name_set", (b"flash",)), ("pool_name_set", (b"hdd",))]),
    (from_xattr(bytes.fromhex(RECORDED.read_text().split("0x")[1])), [
        ("stripe_count_set", (1,)), ("stripe_size_set", (4 << 20,)), ("pool_name_set", (b"flash",))]),
    (Layout((Component(pool="hdd", stripe_count=2, ost_list=(4, 2)),), composite=False), [
        ("stripe_count_set", (2,)), ("pool_name_set", (b"hdd",)), *(("ost_index_set", on) for on in ((0, 4), (1, 2)))]),
    (NO_LAYOUT, []),
], ids=["two components", "objects name no OST", "each stripe on its OST", "no layout"])
def test_a_layout_is_built_component_by_component(
        tmp_path: Path, layout: Layout, calls: list[tuple[str, tuple[object, ...]]]) -> None:
    handle = Handle(llapi_layout_file_open=opens)
    os.close(open_with_layout(handle.library(), str(tmp_path / "new"), os.O_CREAT | os.O_RDWR, 0o600, layout))
    assert sorted(handle.set_calls()) == sorted(calls)
    assert len(handle.llapi_layout_free.calls) == 1


def test_an_impossible_layout_is_refused_before_opening(tmp_path: Path) -> None:
    handle = Handle(llapi_layout_file_open=opens)
    with pytest.raises(ValueError, match="foreign"):
        open_with_layout(handle.library(), str(tmp_path), os.O_RDONLY, 0, Layout((Component(pattern="foreign"),)))
    assert not handle.llapi_layout_file_open.calls
    assert len(handle.llapi_layout_free.calls) == 1
