"""A directory's own default layout, and the root's, which Lustre returns without one; the default striping."""

import os
from pathlib import Path

import pytest

from lustre.errors import NotLustre, UnknownLayout, understood
from lustre.layout.directory import DefaultStriping, default_of_xattr, stripes_of_xattr
from lustre.layout.model import EOF, Component, Layout
from lustre.layout.xattr import from_xattr
from lustre.llapi import directories, layouts
from lustre.llapi.directories import opened
from tests.lustre.fake_llapi import Handle, opens

FLASH = bytes.fromhex("d00bd30b0100000000000000000000000000000000000000000000000000ffff666c617368000000"
                      "0000000000000000")
"""``lustre.lov`` and ``trusted.lov`` of a directory with ``lfs setstripe -p flash``, as recorded on 2.17.57."""
HDD = FLASH.replace(b"flash", b"hdd\0\0")


class Attributes:
    """A client's answers for a root with a default layout, and for directories with and without one.

    From 2.17 on, the first OST is left out of attributes (``ll_sanitize_xattr``).
    ``trusted.lov`` is answered like ``lustre.lov``, as ``ll_xattr_get`` does: only the list tells them apart. Lists are
    as in the recordings: every directory has ``trusted.lma``, which only root sees.
    """

    def __init__(self, root: Path, kept: dict[Path, bytes], *, privileged: bool = True) -> None:
        self.root, self.kept, self.privileged = root, kept, privileged

    def __call__(self, place: str, name: str) -> bytes | None:
        assert name in {"lustre.lov", "trusted.lov"}
        reported = self.whole(place)
        return None if reported is None else reported[:30] + b"\xff\xff" + reported[32:]

    def whole(self, place: str) -> bytes | None:
        own = self.kept.get(Path(place))
        return own if own is not None else self.kept.get(self.root)

    def names(self, place: str) -> list[str]:
        listed = ["trusted.lma", "trusted.lov"] if Path(place) in self.kept else ["trusted.lma"]
        reported = ["lustre.lov"] if self(place, "lustre.lov") is not None else []
        return [*(listed if self.privileged else []), *reported]


def own(place: Path, attributes: Attributes) -> Layout | None:
    return layouts.own_layout(str(place), str(attributes.root), attributes, attributes.names, attributes.whole)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("with", "without", "same"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    return tmp_path


@pytest.mark.parametrize(("kept", "asked", "data", "privileged"), [
    pytest.param({"": HDD, "with": FLASH}, "without", None, True, id="the default of the root is not its own"),
    pytest.param({"": HDD, "with": FLASH}, "without", None, False, id="the same for others than root"),
    pytest.param({"": HDD, "with": FLASH}, "with", FLASH, True, id="a default of its own"),
    pytest.param({"": HDD, "with": FLASH}, "with", FLASH, False, id="one of its own for others than root"),
    pytest.param({"": HDD, "with": FLASH}, "", HDD, False, id="the root itself"),
    pytest.param({"": HDD, "same": HDD}, "same", HDD, True, id="one of its own that is the same as the root's"),
    pytest.param({"": HDD, "file": HDD}, "file", HDD, False, id="a file"),
    pytest.param({}, "without", None, True, id="no default anywhere"),
])
def test_the_default_of_the_root_is_not_the_directorys_own(
        root: Path, kept: dict[str, bytes], asked: str, data: bytes | None, privileged: bool) -> None:
    attributes = Attributes(root, {root / name: value for name, value in kept.items()}, privileged=privileged)
    assert own(root / asked, attributes) == (data and from_xattr(data))


def test_the_wanted_first_ost_of_a_default_layout_is_kept(root: Path) -> None:
    third = FLASH[:30] + b"\x03\0" + FLASH[32:]
    found = own(root / "with", Attributes(root, {root / "with": third}))
    assert found.components[0].stripe_offset == 3


@pytest.mark.parametrize("layout", [
    Layout((Component(stripe_count=4),), composite=False),
    Layout((Component(0, 1 << 20), Component(1 << 20, EOF, stripe_count=-1))),
])
def test_a_default_layout_without_a_pool_keeps_no_earlier_pool(root: Path, layout: Layout) -> None:
    """liblustreapi would write it in the form from which Lustre makes: the same, in the pool there was before."""
    written: list[tuple[str, bytes]] = []

    def write(directory: int, name: str, value: bytes) -> None:
        assert os.path.samestat(os.fstat(directory), os.stat(root / "with"))
        written.append((name, value))

    handle = Handle(llapi_layout_file_open=opens)
    with opened(str(root / "with")) as directory:
        layouts.set_default(handle.library(), directory, layout, write)
        assert handle.llapi_layout_file_open.calls == []
        assert [(name, from_xattr(value)) for name, value in written] == [("lustre.lov", layout)]
        layouts.set_default(handle.library(), directory, from_xattr(FLASH), write)
    assert (len(handle.llapi_layout_file_open.calls), len(written)) == (1, 1)


def test_a_directory_outside_lustre_has_no_default_layout(root: Path) -> None:
    with pytest.raises(NotLustre):
        layouts.whole_default(str(root / "with"))


def test_the_request_is_that_of_lfs() -> None:
    made: list[tuple[int, bytes]] = []
    directories.set_default(0, DefaultStriping(2, -1, "crush", 1),
                            lambda _, request, value: made.append((request, value)))
    directories.set_default(0, None, lambda _, request, value: made.append((request, value)))
    (set_to, value), (deleted, nothing) = made
    assert set_to == deleted == 3 << 30 | 48 << 16 | ord("f") << 8 | 246
    assert default_of_xattr(value) == DefaultStriping(2, -1, "crush", 1)
    empty = default_of_xattr(nothing)
    assert (empty.stripe_count, empty.mdt_index, len(nothing)) == (0, -1, 48), "LMVEA_DELETE_VALUES"


def test_an_unknown_value_is_an_error_of_the_file_system() -> None:
    for decode in (stripes_of_xattr, default_of_xattr):
        with pytest.raises(UnknownLayout, match="magic"):
            understood(decode, b"\0" * 64)
