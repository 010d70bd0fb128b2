"""What the user of a job may read or write: owner, mode bits, ACL, directories, links."""

import stat
import struct
from dataclasses import replace
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.filesystem import FileStatus
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tests.tierd.later import raising
from tierd.act.user_rights import ACL, Right, RightsCheck, User, Users, permits
from tierd.refusal import Reason, Refusal

ALICE, BOB, STAFF = 1001, 1002, 100
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
NOBODY = 0xFFFFFFFF


def acl(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def status(mode: int, uid: int = ALICE, gid: int = STAFF) -> FileStatus:
    return FileStatus(Fid(1, 1), 0, 0.0, 0.0, uid, gid, 1, mode=stat.S_IFREG | mode)


@given(mode=st.integers(0, 0o777), uid=st.sampled_from((ALICE, BOB)), groups=st.sets(st.sampled_from((STAFF, 7))),
       wanted=st.sampled_from(list(Right)))
def test_without_an_acl_one_class_of_the_mode_decides(mode: int, uid: int, groups: set[int], wanted: Right) -> None:
    digits = f"{mode:03o}"
    digit = digits[0] if uid == ALICE else digits[1] if STAFF in groups else digits[2]
    assert permits(status(mode), b"", User(uid, frozenset(groups)), wanted) is bool(int(digit) & wanted)


@pytest.mark.parametrize(("user", "groups", "may"), [
    (ALICE, (), True),  # the owner, whatever the mask
    (BOB, (STAFF,), False),  # a named user, though the group may
    (1003, (), True),  # a named user
    (1004, (STAFF,), True),
    (1004, (200,), False),  # a named group, though others may
    (1004, (200, STAFF), True),  # any of the groups
    (1004, (), True),
    (1005, (), False),  # a named user, taken away by the mask
    (1006, (300,), False),  # a named group, taken away by the mask
])
def test_an_acl_decides_by_its_entries(user: int, groups: tuple[int, ...], may: bool) -> None:
    entries = acl((USER_OBJ, 4, NOBODY), (USER, 0, BOB), (USER, 4, 1003), (USER, 2, 1005), (GROUP_OBJ, 4, NOBODY),
                  (GROUP, 0, 200), (GROUP, 2, 300), (MASK, 4, NOBODY), (OTHER, 4, NOBODY))
    wanted = Right.WRITE if user in {1005, 1006} else Right.READ
    assert permits(status(0o444), entries, User(user, frozenset(groups)), wanted) is may


@given(st.binary(max_size=60))
def test_any_bytes_are_an_acl_or_an_error(data: bytes) -> None:
    try:
        permits(status(0o777), data, User(BOB, frozenset()), Right.READ)
    except ValueError:
        assert data


@pytest.fixture
def filesystem() -> SimulatedFilesystem:
    cluster = Cluster(recorded_test_bed(), ())
    for path in ("/alice/a", "/bob/secret/b", "/bob/open/c"):
        uid = ALICE if "alice" in path else BOB
        cluster.make_file(path, 4096, uid=uid)
        cluster.namespace.lookup(path.rpartition("/")[0]).uid = uid
    cluster.namespace.lookup("/bob/secret").mode = stat.S_IFDIR | 0o700
    return SimulatedFilesystem(cluster)


def refused(filesystem: SimulatedFilesystem, path: str, uid: int, wanted: Right = Right.READ) -> Refusal | None:
    check = RightsCheck(filesystem, User(uid, frozenset({STAFF}), f"u{uid}"), wanted)
    return check(path, filesystem.status(path))


def test_a_file_is_refused_to_a_user_who_may_not_use_it(filesystem: SimulatedFilesystem) -> None:
    assert refused(filesystem, "/bob/open/c", ALICE) is None
    assert str(refused(filesystem, "/bob/open/c", ALICE, Right.WRITE)) == "user u1001 may not write the file"
    assert refused(filesystem, "/bob/open/c", BOB, Right.WRITE) is None
    assert refused(filesystem, "/bob/secret/b", 0) is None
    hidden = refused(filesystem, "/bob/secret/b", ALICE)
    assert hidden == Refusal(Reason.NO_PERMISSION, "user u1001 may not search the directory /bob/secret")
    assert str(refused(filesystem, "/bob/secret", ALICE)) == "user u1001 may not list the directory /bob/secret"
    filesystem.set_xattr("/bob/secret", ACL, acl((USER_OBJ, 7, NOBODY), (USER, 5, ALICE), (GROUP_OBJ, 0, NOBODY),
                                                 (MASK, 5, NOBODY), (OTHER, 0, NOBODY)))
    assert refused(filesystem, "/bob/secret/b", ALICE) is None
    filesystem.set_xattr("/bob/secret", ACL, b"damaged")
    assert "cannot be read" in str(refused(filesystem, "/bob/secret/b", ALICE))


class Linked(SimulatedFilesystem):
    """Alice's directory has a symbolic link to Bob's: the kernel follows it in the middle of a path."""

    def status(self, path: str) -> FileStatus:
        if path == "/alice/link":
            return status(stat.S_IFLNK | 0o777)
        return super().status(path.replace("/alice/link/", "/bob/secret/"))


def test_a_path_through_a_symbolic_link_is_refused(filesystem: SimulatedFilesystem) -> None:
    linked = Linked(filesystem._cluster)
    found = refused(linked, "/alice/link/b", ALICE)
    assert found is not None
    assert found == Refusal(Reason.LINKED, "/alice/link is a symbolic link, or a file")


def test_an_unknown_user_and_a_silent_database_permit_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(Users(raising(KeyError(4711)))(4711, 1)) == "tierd's node has no user 4711"
    assert isinstance(Users()(0, 0), User)
    monkeypatch.setattr("tierd.act.user_rights.LOOKUP_SECONDS", 0.01)
    answered = Event()
    assert "does not answer about user 7" in str(Users(lambda *_: User(int(answered.wait(5)), frozenset()))(7, 1))
    answered.set()


class Deep:
    """Directories in directories, as many as fit a path."""

    def status(self, path: str) -> FileStatus:
        return replace(status(0o700 if path == "/a/a" else 0o755), is_directory=not path.endswith("file"))

    def path_of(self, _: Fid, link: int = 0) -> str:
        return "/a" * 2000 + "/file"

    def xattr(self, *_: str) -> bytes:
        return b""


def test_a_deep_path_ends_no_daemon() -> None:
    """Any user can make one and stage it. Python allows a thousand nested calls."""
    path = Deep().path_of(Fid(1, 1))
    for user, why in ((ALICE, None), (BOB, "user u may not search the directory /a/a")):
        check = RightsCheck(Deep(), User(user, frozenset(), "u"), Right.READ)  # type: ignore[arg-type]
        found = check(path, Deep().status(path))
        assert (found and found.sentence) == why
