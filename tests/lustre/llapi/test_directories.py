"""The ioctl that sets the default striping of directories."""

import pytest

from lustre.errors import UnknownLayout, understood
from lustre.layout.directory import DefaultStriping, default_of_xattr, stripes_of_xattr
from lustre.llapi import directories


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
