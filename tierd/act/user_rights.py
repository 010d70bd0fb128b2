"""What a user may do with a file, as Linux decides it: owner, mode bits and POSIX ACL (acl(5), path_resolution(7)).

tierd runs as root, so the kernel would permit everything. A job of a scheduler may stage only files that its user could
read or write. tierd therefore checks each directory on the path and the file itself, with the status that also gave the
FID of the move. A nodemap of the file system may give a user fewer rights than this check.
"""

from __future__ import annotations

import os
import pwd
import struct
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass
from enum import IntFlag

from lustre.errors import Unsupported
from lustre.filesystem import FileStatus, Filesystem
from tierd.act.guard import with_parents
from tierd.background import DaemonExecutor
from tierd.refusal import Reason, Refusal, of_error
from tierd.text import quoted


class Right(IntFlag):
    """Permission bits, as in a mode and in an entry of an ACL."""

    SEARCH = 1
    WRITE = 2
    READ = 4


@dataclass(frozen=True, slots=True)
class User:
    """A user with all groups."""

    uid: int
    groups: frozenset[int]
    name: str = ""


ACL = "system.posix_acl_access"
"""The extended attribute with the access ACL of a file or directory."""
_VERSION = 2
_HEADER, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20


def acl_entries(data: bytes) -> list[tuple[int, Right, int]]:
    """Tag, rights and id of each entry of an ACL. Raises ValueError.

    >>> acl_entries(bytes.fromhex("02000000 01000600ffffffff 02000400ea030000"))
    [(1, <Right.WRITE|READ: 6>, 4294967295), (2, <Right.READ: 4>, 1002)]
    """
    if len(data) < _HEADER.size or (len(data) - _HEADER.size) % _ENTRY.size or _HEADER.unpack_from(data)[0] != _VERSION:
        raise ValueError("not an ACL of version 2")
    return [(tag, Right(rights & 7), owner) for tag, rights, owner in _ENTRY.iter_unpack(data[_HEADER.size:])]


def permits(status: FileStatus, acl: bytes, user: User, wanted: Right) -> bool:
    """Whether a user has all wanted rights. ``acl`` is empty for a file without one. Raises ValueError.

    >>> from lustre.fid import Fid
    >>> mine = FileStatus(Fid(1, 1), 0, 0.0, 0.0, 1001, 100, 1, mode=0o640)
    >>> [permits(mine, b"", User(uid, frozenset({gid})), Right.READ) for uid, gid in ((1001, 5), (7, 100), (7, 5))]
    [True, True, False]
    """
    if user.uid == 0:
        return True
    if user.uid == status.uid:
        return wanted in Right(status.mode >> 6 & 7)  # even where the group has more
    if not acl:
        group = status.gid in user.groups
        return wanted in Right(status.mode >> 3 & 7 if group else status.mode & 7)
    entries = acl_entries(acl)
    mask = next((rights for tag, rights, _ in entries if tag == _MASK), Right(7))
    for tag, rights, owner in entries:
        # the entry of a user decides alone, as that of the owner does
        if tag == _USER and owner == user.uid:
            return wanted in rights & mask
    groups = [rights & mask for tag, rights, owner in entries
              if (tag == _GROUP and owner in user.groups) or (tag == _GROUP_OBJ and status.gid in user.groups)]
    # one entry of a group must have all rights: they do not add up
    if groups:
        return any(wanted in rights for rights in groups)
    return any(wanted in rights for tag, rights, _ in entries if tag == _OTHER)


class RightsCheck:
    """Checks the files of one order for one user. It remembers what it found about directories."""

    def __init__(self, filesystem: Filesystem, user: User, wanted: Right) -> None:
        """``wanted`` is what the user must be able to do with each file."""
        self._filesystem = filesystem
        self._user = user
        self._wanted = wanted
        self._directories: dict[str, Refusal | None] = {}

    def __call__(self, path: str, status: FileStatus) -> Refusal | None:
        """Refuses a file that the user could not use, or a directory whose names the user could not list. Of a file
        with several names, the directories of the others would need a check too.
        """
        try:
            if above := self.search(path):
                return above
            if (true := self._filesystem.path_of(status.fid)) != path:
                return Refusal(Reason.LINKED, f"the file has several names (one is {quoted(true)})")
            wanted = Right.READ | Right.SEARCH if status.is_directory else self._wanted
            return self._refusal(path, status, wanted)
        except OSError as error:
            return of_error(error)

    def search(self, path: str) -> Refusal | None:
        """Refuses a path through a symbolic link, or one that the user could not look up. Raises OSError."""
        found = None
        for place in reversed(list(with_parents(path.rpartition("/")[0]))):  # as many as a user likes
            if place not in self._directories:
                self._directories[place] = found or self._refusal(place, self._filesystem.status(place), Right.SEARCH)
            found = self._directories[place]
        return found

    def _refusal(self, path: str, status: FileStatus, wanted: Right) -> Refusal | None:
        if wanted is Right.SEARCH and not status.is_directory:
            return Refusal(Reason.LINKED, f"{quoted(path)} is a symbolic link, or a file")
        try:
            own = self._user.uid in {0, status.uid}  # both need no ACL, which is a request
            allowed = permits(status, b"" if own else self._acl(path), self._user, wanted)
        except ValueError as error:
            return Refusal(Reason.UNREADABLE, f"the ACL of {quoted(path)} cannot be read: {error}")
        if allowed:
            return None
        what = {Right.SEARCH: "search", Right.READ | Right.SEARCH: "list", Right.READ: "read"}.get(wanted, "write")
        about = f" the directory {quoted(path)}" if status.is_directory else " the file"
        return Refusal(Reason.NO_PERMISSION, f"user {self._user.name or self._user.uid} may not {what}{about}")

    def _acl(self, path: str) -> bytes:
        try:
            return self._filesystem.xattr(path, ACL)
        except Unsupported:  # the file system has no ACLs: mode bits decide
            return b""


LOOKUP_SECONDS = 5.0
"""Time limit for the user database, which may be a directory service that does not answer."""


def lookup(uid: int, gid: int) -> User:
    """A user with the groups that this machine's user database gives. Raises KeyError for an unknown user."""
    name = pwd.getpwuid(uid).pw_name
    return User(uid, frozenset(os.getgrouplist(name, gid)), name)


class Users:
    """Looks up users with a deadline. Remembers none: groups change."""

    def __init__(self, lookup: Callable[[int, int], User] = lookup) -> None:
        self._lookup = lookup
        self._executor = DaemonExecutor("tierd-groups", 4)

    def __call__(self, uid: int, gid: int) -> User | Refusal:
        future = self._executor.submit(self._lookup, uid, gid)
        wait([future], LOOKUP_SECONDS)
        if not future.done():
            future.cancel()
            return Refusal(Reason.NO_PERMISSION, f"the user database does not answer about user {uid}")
        try:
            return future.result()
        except (KeyError, OSError, OverflowError):
            return Refusal(Reason.NO_PERMISSION, f"tierd's node has no user {uid}")
