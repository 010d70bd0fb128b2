"""Parameters of Lustre: where they are, and how to read them.

Every release moves some parameters between sysfs, debugfs and procfs. Each parameter is therefore located by itself.

The kernel generates a parameter file while it is read. One ``read`` may return a single record (one job of
``job_stats``), so only an empty result is the end. A parameter that has disappeared is absent, not an error. Files are
opened read-only, because any write to a statistics file clears it. They are closed immediately, because an open file
prevents the unloading of Lustre's modules.

>>> parse_device("lustre-OST0002-osc-ff1100011d6c9800")
Device(fsname='lustre', target='OST0002', kind='osc', instance='ff1100011d6c9800')
>>> parse_device("my-fs-ff1100011d6c9800")
Device(fsname='my-fs', target='', kind='', instance='ff1100011d6c9800')
>>> parse_device("lustre-OST0000-osc-MDT0000")
Device(fsname='lustre', target='OST0000', kind='osc', instance='MDT0000')
>>> parse_device("lustre-MDT0000")
Device(fsname='lustre', target='MDT0000', kind='', instance='')
>>> read_whole("/nowhere/at/all") is None
True
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_TARGET = r"(?P<target>(?:OST|MDT|QMT)[0-9a-fA-F]{4})"
_INSTANCE = r"(?P<instance>[0-9a-f]{8,16}|(?:OST|MDT)[0-9a-fA-F]{4})"
_OF_TARGET = re.compile(rf"(?P<fsname>[^/]+?)-{_TARGET}(?:-(?P<kind>[a-z]+)(?:-{_INSTANCE})?)?")
_OF_MOUNT = re.compile(r"(?P<fsname>[^/]+?)-(?:(?P<kind>cli[a-z]+)-)?(?P<instance>[0-9a-f]{8,16})")
_NAMESPACE = re.compile(rf"(?P<kind>filter|mdt)-(?P<fsname>[^/]+?)-{_TARGET}_UUID")


@dataclass(frozen=True, slots=True)
class Device:
    """The parts of a device name; a missing part is empty."""

    fsname: str
    target: str
    """``OST0002`` or ``MDT0000``; empty for a device of the whole mount."""
    kind: str
    """``osc``, ``mdc``, ``clilov``, ``osp``, ``lwp``…; empty for a server's target and a client's mount."""
    instance: str
    """The mount (hexadecimal, new at each mount), or the target to which this client belongs (``MDT0000``)."""


def parse_device(name: str) -> Device:
    """Split a device name into its parts. A name of unknown form (``MGS``) becomes the kind, without a file system.

    File system names may contain dashes, so names are parsed from the end.
    """
    for form in (_NAMESPACE, _OF_TARGET, _OF_MOUNT):
        if match := form.fullmatch(name):
            part = match.groupdict()
            return Device(part["fsname"], part.get("target") or "", part.get("kind") or "", part.get("instance") or "")
    return Device("", "", name, "")


@dataclass(frozen=True, slots=True)
class Roots:
    """The mount points of the three file systems in which the kernel shows parameters."""

    procfs: Path
    sysfs: Path
    debugfs: Path

    @classmethod
    def of(
        cls,
        procfs: str | os.PathLike[str],
        sysfs: str | os.PathLike[str],
        debugfs: str | os.PathLike[str] | None = None,
    ) -> Roots:
        return cls(Path(procfs), Path(sysfs), Path(debugfs) if debugfs is not None else Path(sysfs, "kernel", "debug"))


class Tree:
    """The parameters of one node, named as ``lctl`` names them but with slashes: ``llite/lustre-ff11…/stats``."""

    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        self._tops = (f"{roots.sysfs}/fs/lustre/", f"{roots.debugfs}/lustre/", f"{roots.procfs}/fs/lustre/")
        self._lnet_tops = (f"{roots.debugfs}/lnet/", f"{roots.procfs}/sys/lnet/")
        self._devices: dict[str, tuple[list[str], tuple[str, ...]]] = {}
        """By kind, the names in each root as one text, and the devices among them."""

    def path(self, parameter: str) -> str | None:
        """Return the path of a parameter, searched in sysfs, debugfs and procfs in this order; None if it is absent.

        Only root may read debugfs. A path that this process may not access counts as absent (see ``closed``).
        """
        for top in self._tops:
            if os.path.exists(top + parameter):
                return top + parameter
        return None

    def lnet_path(self, name: str) -> str | None:
        """Return the path of an LNet parameter, in debugfs or (2.10) procfs, next to Lustre's directory."""
        return next((top + name for top in self._lnet_tops if os.path.exists(top + name)), None)

    def read(self, parameter: str) -> bytes | None:
        path = self.path(parameter)
        return None if path is None else read_whole(path)

    def devices(self, kind: str) -> tuple[str, ...]:
        """Names of the directories below ``kind`` (``"osc"``) in any of the roots, sorted."""
        listed = [_listing(top + kind) for top in self._tops]
        before = self._devices.get(kind)
        if before is None or before[0] != listed:  # else no entry is examined again
            before = self._devices[kind] = listed, self._names(kind, _is_directory)
        return before[1]

    def children(self, folder: str) -> tuple[str, ...]:
        """Names of everything below ``folder`` (``"lov/<device>/pools"``) in any of the roots, sorted."""
        return self._names(folder, lambda _: True)

    def loaded(self) -> bool:
        """Whether Lustre's modules are loaded: any of the three directories exists."""
        return any(map(os.path.isdir, self._tops))

    def closed(self) -> dict[str, str]:
        """Names of the directories that this process may not list. A parameter absent there may exist."""
        places = zip(("sysfs", "debugfs", "procfs"), self._tops, strict=True)
        return {name: top for name, top in places if _refused(top)}

    def _names(self, folder: str, wanted: Callable[[os.DirEntry[str]], bool]) -> tuple[str, ...]:
        names: set[str] = set()
        for top in self._tops:
            try:
                with os.scandir(top + folder) as entries:
                    names.update(entry.name for entry in entries if wanted(entry))
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue
        return tuple(sorted(names))


def _listing(folder: str) -> str:
    try:
        return "/".join(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ""


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _refused(folder: str) -> bool:
    try:
        os.scandir(folder).close()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


CHUNK_BYTES = 1 << 16
"""Bytes per read: larger than most files, and small enough to avoid ``mmap``."""

LINE_BYTES = 256
"""Upper bound of the size of a one-number parameter."""

ABSENT = frozenset({errno.ENOENT, errno.ENODEV, errno.ENOTDIR, errno.ENXIO, errno.ESTALE})
"""Errors of a parameter that is absent or whose device was just removed."""


Changed = list[tuple[int, bytes | None, int]]
"""Position, text and mark of the devices with a changed text. None for a text that must be read by itself."""
ReadMany = Callable[
    [str, list[str], str, tuple[bytes, ...] | None, bytes, bytes | bytearray, bytearray],
    tuple[int, Changed],
]
ReadNumbers = Callable[
    [str, list[str], tuple[str, ...], bytes | bytearray, bytearray],
    tuple[int, list[list[int | None]], list[tuple[int, int]]],
]
read_many: ReadMany | None = None
"""Reads PARENT/DEVICE/NAME for many devices, and returns the number of bytes and the changed texts. None without the C
module (``lustre/_files.c``)."""
read_numbers: ReadNumbers | None = None
"""Reads the numbers PARENT/DEVICE/NAME for many devices and some names, and returns the number of bytes, the numbers by
name and device, and the positions (device, name) of files to read by themselves. None without the C module."""
try:
    from lustre import _files
except ImportError:
    pass
else:
    read_many, read_numbers = _files.read_many, _files.read_numbers

MOST_BYTES = 256 << 20
"""Size limit of a parameter. A hundred thousand jobs take less. The kernel repeats a longer text endlessly."""


def read_whole(path: str | os.PathLike[str]) -> bytes | None:
    """Read a whole file; None if it is absent. Raises OSError for other errors, and EFBIG if the file does not end."""
    return _read(path, CHUNK_BYTES)


def read_line(path: str | os.PathLike[str]) -> bytes | None:
    """Read a file of one line; None if it is absent. One read is enough, because the kernel returns a whole line."""
    return _read(path, LINE_BYTES, b"\n")


def read_through(path: str | os.PathLike[str], take: Callable[[bytes], None]) -> bool:
    """Pass a file to ``take`` in pieces, in one reused buffer. Returns False if the file is absent or disappears.

    New memory costs more than the reading: reading 22 MB of jobs at once takes three times as long as in pieces.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = 0
            while piece := os.read(descriptor, CHUNK_BYTES):
                size = _ends(size + len(piece), path)
                take(piece)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in ABSENT:
            return False
        raise
    return True


def _read(path: str | os.PathLike[str], first_bytes: int, end: bytes | None = None) -> bytes | None:
    """A file to its end, or to the end of a first read that ends with ``end``. A read allocates what it asks for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(descriptor, first_bytes)
            if not data or (data[-1:] == end and len(data) < first_bytes):
                return data  # whole: a further read would return nothing
            return _rest(descriptor, data, path)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in ABSENT:
            return None
        raise


def _rest(descriptor: int, data: bytes, path: str | os.PathLike[str]) -> bytes:
    if not (more := os.read(descriptor, CHUNK_BYTES)):
        return data
    chunks, size = [data], len(data)
    while more:
        size = _ends(size + len(more), path)
        chunks.append(more)
        more = os.read(descriptor, CHUNK_BYTES)
    return b"".join(chunks)


def _ends(size: int, path: str | os.PathLike[str]) -> int:
    if size > MOST_BYTES:
        raise OSError(errno.EFBIG, f"the file does not end within {MOST_BYTES >> 20} MiB", path)
    return size
