"""A file as a mover finds it: everything a refusal may rest on, read through one descriptor."""

from __future__ import annotations

import stat
from dataclasses import dataclass

from lustre.fid import Fid
from lustre.filesystem import Belongings, Calls, FileFlags, Hsm, Status
from lustre.layout.model import Layout, StripeObject


@dataclass(frozen=True, slots=True)
class Facts:
    """One file at one moment."""

    fid: Fid
    status: Status
    layout: Layout | None
    flags: FileFlags
    hsm: Hsm
    belongings: Belongings
    project: int

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.status.mode)

    @property
    def pin(self) -> bytes:
        """What pins it to a pool; b"" when nothing does."""
        return self.belongings.pin

    def changed_since(self, earlier: Facts) -> str:
        """What is not as it was, in words; "" when all that matters is. Names, modes and attributes may change."""
        now, then = self.status, earlier.status
        if self.fid != earlier.fid:
            return f"the name now belongs to {self.fid}, not to {earlier.fid}"
        if now.size_bytes != then.size_bytes:
            return f"its size was {then.size_bytes} bytes and is {now.size_bytes}"
        if now.mtime_ns != then.mtime_ns:
            return "it was modified"
        if (now.uid, now.gid, self.project) != (then.uid, then.gid, earlier.project):
            return "it was given to another owner"
        if objects(self.layout) != objects(earlier.layout):
            return "its layout was changed"
        if (self.flags, self.hsm, self.pin) != (earlier.flags, earlier.hsm, earlier.pin):
            return "its flags, archive state or pin changed"
        return ""


def look(calls: Calls, path: str) -> Facts:
    """The file at a path."""
    descriptor = calls.open_for_reading(path)
    try:
        return look_at(calls, descriptor)
    finally:
        calls.close(descriptor)


def look_at(calls: Calls, descriptor: int, hsm: Hsm | None = None) -> Facts:
    """An open file. Of what is no regular file only the status and the identity are asked for.

    ``hsm`` is its archive state where that has just been asked: it is a request to the MDT each time.
    """
    status = calls.status(descriptor)
    fid = calls.fid(descriptor)
    if not stat.S_ISREG(status.mode):
        return Facts(fid, status, None, FileFlags.NONE, Hsm(), Belongings(), 0)
    return Facts(fid, status, calls.layout(descriptor), calls.flags(descriptor),
                 calls.hsm(descriptor) if hsm is None else hsm, calls.belongings(descriptor), calls.project(descriptor))


def objects(layout: Layout | None) -> tuple[tuple[StripeObject, ...], ...]:
    """The objects that hold the data, component by component: they say whether two layouts are the very same one."""
    return () if layout is None else tuple(component.objects for component in layout.components)
