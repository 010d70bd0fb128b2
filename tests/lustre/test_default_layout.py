"""A directory's own default layout, and that of the root, which Lustre tells of directories that have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from lustre import default_layout
from lustre.layout_xattr import from_xattr

FLASH = bytes.fromhex("d00bd30b0100000000000000000000000000000000000000000000000000ffff666c617368000000"
                      "0000000000000000")
"""``lustre.lov`` and ``trusted.lov`` of a directory with ``lfs setstripe -p flash``, as recorded on 2.17.57."""
HDD = FLASH.replace(b"flash", b"hdd\0\0")


class Attributes:
    """What a client tells of a root with a default of its own, and of directories with and without."""

    def __init__(self, root: Path, kept: dict[Path, bytes], *, privileged: bool = True) -> None:
        self.root, self.kept, self.privileged = root, kept, privileged

    def __call__(self, place: str, name: str) -> bytes | None:
        own = self.kept.get(Path(place))
        if name == "trusted.lov":
            return own if self.privileged else None
        assert name == "lustre.lov"
        return own if own is not None else self.kept.get(self.root)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("with", "without", "same"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    return tmp_path


@pytest.mark.parametrize("privileged", [True, False])
def test_what_the_root_has_is_not_the_directorys_own(root: Path, privileged: bool) -> None:
    attributes = Attributes(root, {root: HDD, root / "with": FLASH}, privileged=privileged)
    assert default_layout.own(str(root / "without"), str(root), attributes) is None
    assert default_layout.own(str(root / "with"), str(root), attributes) == from_xattr(FLASH)
    assert default_layout.own(str(root), str(root), attributes) == from_xattr(HDD)


def test_a_default_of_its_own_may_be_the_same_as_the_roots(root: Path) -> None:
    attributes = Attributes(root, {root: HDD, root / "same": HDD})
    assert default_layout.own(str(root / "same"), str(root), attributes) == from_xattr(HDD)


def test_without_a_default_of_the_root_there_is_none(root: Path) -> None:
    assert default_layout.own(str(root / "without"), str(root), Attributes(root, {})) is None


def test_the_layout_of_a_file_is_always_its_own(root: Path) -> None:
    attributes = Attributes(root, {root: HDD, root / "file": HDD}, privileged=False)
    assert default_layout.own(str(root / "file"), str(root), attributes) == from_xattr(HDD)
