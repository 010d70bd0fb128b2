"""Changelog users, in forms that neither a recording nor a node written from the source has."""

from __future__ import annotations

import pytest

from lustre.formats import changelog_users


@pytest.mark.parametrize(("heading", "row", "idle_seconds", "mask"), [
    (b"current index: 9\nID    index\n", b"cl1   7\n", None, ()),
    (b"current_index: 9\nID    index (idle) mask\n", b"cl1   7 (4294967294) mask=MARK\n", None, (b"MARK",)),
], ids=["2.10.0 has no idle time", "idle since the future: the difference of two times in 32 bits"])
def test_users_without_an_idle_time(heading: bytes, row: bytes, idle_seconds: int | None,
                                    mask: tuple[bytes, ...]) -> None:
    expected = changelog_users.ChangelogUsers(9, (changelog_users.User(b"cl1", 7, idle_seconds, mask),), 0)
    assert changelog_users.parse(heading + row) == expected
