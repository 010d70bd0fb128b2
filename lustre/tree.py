"""Where parameters live: sysfs, debugfs and procfs, searched parameter by parameter, because every release moves some.

>>> parse_device("lustre-OST0002-osc-ff1100011d6c9800")
Device(fsname='lustre', target='OST0002', kind='osc', instance='ff1100011d6c9800')
>>> parse_device("my-fs-ff1100011d6c9800")
Device(fsname='my-fs', target='', kind='', instance='ff1100011d6c9800')
>>> parse_device("lustre-OST0000-osc-MDT0000")
Device(fsname='lustre', target='OST0000', kind='osc', instance='MDT0000')
>>> parse_device("lustre-MDT0000")
Device(fsname='lustre', target='MDT0000', kind='', instance='')
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lustre.read import read_whole

_TARGET = r"(?P<target>(?:OST|MDT|QMT)[0-9a-fA-F]{4})"
_INSTANCE = r"(?P<instance>[0-9a-f]{8,16}|(?:OST|MDT)[0-9a-fA-F]{4})"
_OF_TARGET = re.compile(rf"(?P<fsname>[^/]+?)-{_TARGET}(?:-(?P<kind>[a-z]+)(?:-{_INSTANCE})?)?")
_OF_MOUNT = re.compile(r"(?P<fsname>[^/]+?)-(?:(?P<kind>cli[a-z]+)-)?(?P<instance>[0-9a-f]{8,16})")
_NAMESPACE = re.compile(rf"(?P<kind>filter|mdt)-(?P<fsname>[^/]+?)-{_TARGET}_UUID")


@dataclass(frozen=True, slots=True)
class Device:
    """What the name of a device says; a part the name does not have is empty."""

    fsname: str
    target: str
    """``OST0002`` or ``MDT0000``; empty for what belongs to a mount as a whole."""
    kind: str
    """``osc``, ``mdc``, ``clilov``, ``mdtlov``, ``osp``, ``lwp``…; empty for a server's target and a client's mount."""
    instance: str
    """The mount (hexadecimal, new at each mount), or the server that holds this client (``MDT0000``)."""


def parse_device(name: str) -> Device:
    """Take a device name apart. A name of no known form (``MGS``) comes back as its own kind, without file system.

    File system names may hold dashes, so names are read from their end.
    """
    for form in (_NAMESPACE, _OF_TARGET, _OF_MOUNT):
        if match := form.fullmatch(name):
            part = match.groupdict()
            return Device(part["fsname"], part.get("target") or "", part.get("kind") or "", part.get("instance") or "")
    return Device("", "", name, "")


@dataclass(frozen=True, slots=True)
class Roots:
    """The mount points of the three file systems the kernel shows parameters in."""

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
        """Roots from paths; debugfs is at its usual place below sysfs unless said otherwise."""
        return cls(Path(procfs), Path(sysfs), Path(debugfs) if debugfs is not None else Path(sysfs, "kernel", "debug"))


class Tree:
    """The parameters of one node, named as ``lctl`` names them but with slashes: ``llite/lustre-ff11…/stats``."""

    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        self._tops = (f"{roots.sysfs}/fs/lustre/", f"{roots.debugfs}/lustre/", f"{roots.procfs}/fs/lustre/")
        self._lnet_tops = (f"{roots.debugfs}/lnet/", f"{roots.procfs}/sys/lnet/")

    def path(self, parameter: str) -> str | None:
        """Where the parameter is: the first of sysfs, debugfs, procfs that has it. None when none has.

        Debugfs is closed to all but root; what cannot be looked at counts as not there (see ``closed``).
        """
        for top in self._tops:
            if os.path.exists(top + parameter):
                return top + parameter
        return None

    def lnet_path(self, name: str) -> str | None:
        """Where a parameter of the network layer is, which lies beside Lustre's: debugfs, or (2.10) procfs."""
        return next((top + name for top in self._lnet_tops if os.path.exists(top + name)), None)

    def read(self, parameter: str) -> bytes | None:
        """The whole parameter, or None when it is absent."""
        path = self.path(parameter)
        return None if path is None else read_whole(path)

    def devices(self, kind: str) -> tuple[str, ...]:
        """Names of the directories below ``kind`` (``"osc"``) in any of the roots, sorted."""
        return self._names(kind, _is_directory)

    def children(self, folder: str) -> tuple[str, ...]:
        """Names of everything below ``folder`` (``"lov/<device>/pools"``) in any of the roots, sorted."""
        return self._names(folder, lambda _: True)

    def loaded(self) -> bool:
        """Whether any of the three places is there; none is where Lustre is not loaded."""
        return any(map(os.path.isdir, self._tops))

    def closed(self) -> dict[str, str]:
        """Those of the three places that this process may not list, so that "absent" there means nothing, by name."""
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
