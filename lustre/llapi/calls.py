"""liblustreapi, called from Python: Lustre's library for requests beyond plain system calls.

Importing this module does not load the library. Loading it probes functions that later releases introduced. Using a
missing function raises an error with its name and the release that introduced it. The library's own messages are
silenced; its errors become typed OSErrors.

>>> Library.load("liblustreapi-of-no-release.so.1")  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
lustre.errors.LibraryMissing: [Errno 80] liblustreapi-of-no-release.so.1 cannot be loaded (...); install ...
"""

from __future__ import annotations

import ctypes
import errno
import os
from ctypes import byref
from typing import Any

from lustre.errors import LibraryMissing, of_errno
from lustre.fid import Fid
from lustre.filesystem import Hsm, HsmFlags, Quota
from lustre.llapi.directories import opened
from lustre.llapi.prototypes import SYMBOLS, FidStruct, HsmStateStruct, QuotaStruct

NAME = "liblustreapi.so.1"
PACKAGE = "the Lustre client utilities (package lustre-client, or lustre-client-utils on Debian)"

_SILENT = 0
_READ_LEASE = 1
_FLUSH_READERS = 1
"""LL_DV_RD_FLUSH: all clients, this one too, lose their write locks before Lustre reads the version."""
_SWAP_AND_CLOSE = 0x10
_GET_QUOTA, _GET_POOL_QUOTA = 0x800007, 0x80000F
_LIMITS_AND_USE = 0x1 | 0x2
"""QIF_BLIMITS and QIF_SPACE. Without them, ``lfs quota`` prints the numbers in brackets, as inaccurate."""
_PATH_BYTES = 4096


class Library:
    """The loaded library. It offers read leases only, and no group locks (docs/decisions)."""

    def __init__(self, handle: ctypes.CDLL, name: str) -> None:
        self._name = name
        self._functions: dict[str, Any] = {}
        for symbol in SYMBOLS:
            if (function := getattr(handle, symbol.name, None)) is not None:
                function.restype, function.argtypes = symbol.result, symbol.arguments
                self._functions[symbol.name] = function
        self.function("llapi_msg_set_level")(_SILENT)

    @classmethod
    def load(cls, name: str = NAME) -> Library:
        """Load the library. Raises LibraryMissing, which names the package to install."""
        try:
            return cls(ctypes.CDLL(name, use_errno=True), name)
        except OSError as error:
            if isinstance(error, LibraryMissing):
                raise
            raise LibraryMissing(errno.ELIBBAD, f"{name} cannot be loaded ({error}); install {PACKAGE}") from error

    def function(self, name: str) -> Any:
        """Return a function. Raises LibraryMissing, which names the release that introduced it."""
        if name in self._functions:
            return self._functions[name]
        since = next((symbol.since for symbol in SYMBOLS if symbol.name == name), "a release to come")
        raise LibraryMissing(errno.ELIBBAD, f"{self._name} has no {name}, which came with Lustre {since}")

    def ask(self, name: str, *arguments: Any, path: str | None = None) -> int:
        """Call a function that returns a negative errno on failure; returns its result."""
        result = int(self.function(name)(*arguments))
        if result < 0:
            raise of_errno(result, name, path)
        return result

    def fid(self, descriptor: int) -> Fid:
        found = FidStruct()
        self.ask("llapi_fd2fid", descriptor, byref(found))
        return _fid(found)

    def path_fid(self, path: str) -> Fid:
        found = FidStruct()
        self.ask("llapi_path2fid", os.fsencode(path), byref(found), path=path)
        return _fid(found)

    def path_of(self, mount: str, fid: Fid, link: int = 0) -> str:
        """Return a path of a FID, relative to the mount point, with a leading slash."""
        buffer = ctypes.create_string_buffer(_PATH_BYTES)
        answer = buffer, _PATH_BYTES, byref(ctypes.c_longlong(-1)), byref(ctypes.c_int(link))
        if "llapi_fid2path_at" in self._functions:
            # by path, the library keeps the root open, which blocks an unmount, and keeps a client that is gone
            with opened(mount) as root:
                self.ask("llapi_fid2path_at", root, byref(struct_of(fid)), *answer, path=str(fid))
        else:
            self.ask("llapi_fid2path", os.fsencode(mount), str(fid).encode("ascii"), *answer, path=str(fid))
        return "/" + os.fsdecode(buffer.value).lstrip("/")

    def open_fid(self, mount: str, fid: Fid, flags: int) -> int:
        """Open a file by its FID. Needs root, and the role ``byfid_ops`` if a nodemap restricts roles.

        Unlike other functions, it returns -1 and sets ``errno`` in 2.12 and 2.13. As a negative errno, -1 would be
        EPERM, so a file that no longer exists would appear as a file without permission.
        """
        if "llapi_open_by_fid_at" in self._functions:
            with opened(mount) as root:
                return self.ask("llapi_open_by_fid_at", root, byref(struct_of(fid)), flags, path=str(fid))
        ctypes.set_errno(0)
        descriptor = int(self.function("llapi_open_by_fid")(os.fsencode(mount), byref(struct_of(fid)), flags))
        if descriptor < 0:
            number = ctypes.get_errno() if descriptor == -1 else 0
            raise of_errno(number or descriptor, "llapi_open_by_fid", str(fid))
        return descriptor

    def mdt_index(self, descriptor: int) -> int:
        index = ctypes.c_int(-1)
        self.ask("llapi_file_fget_mdtidx", descriptor, byref(index))
        return index.value

    def mdt_index_of(self, on_mount: int, fid: Fid) -> int:
        """Return the index of the MDT of a FID, from the FID location database, through any descriptor of the mount."""
        index = ctypes.c_int(-1)
        self.ask("llapi_get_mdt_index_by_fid", on_mount, byref(struct_of(fid)), byref(index), path=str(fid))
        return index.value

    def lease(self, descriptor: int) -> None:
        self.ask("llapi_lease_acquire", descriptor, _READ_LEASE)

    def lease_held(self, descriptor: int) -> bool:
        return int(self.function("llapi_lease_check")(descriptor)) > 0  # an unknown state counts as broken

    def data_version(self, descriptor: int, *, flush: bool) -> int:
        """Return the data version. With ``flush``, all clients write back their dirty pages first."""
        version = ctypes.c_uint64(0)
        self.ask("llapi_get_data_version", descriptor, byref(version), _FLUSH_READERS if flush else 0)
        return version.value

    def swap_and_close(self, source: int, volatile: int, source_version: int, volatile_version: int) -> None:
        """Swap two layouts and close the source in one transaction if the lease of the source is unbroken."""
        self.ask("llapi_fswap_layouts", source, volatile, source_version, volatile_version, _SWAP_AND_CLOSE)

    def hsm(self, descriptor: int) -> Hsm:
        state = HsmStateStruct()
        self.ask("llapi_hsm_state_get_fd", descriptor, byref(state))
        known = sum(flag.value for flag in HsmFlags)
        return Hsm(HsmFlags(state.states & known), state.in_progress_state != 0, state.states & ~known)

    def clear_changelog(self, mdt: str, user: str, index: int) -> None:
        """Clear records up to an index for one reader. Raises ValueError for 0, which would mean all records."""
        if index <= 0:
            raise ValueError(f"clearing changelog record {index} would clear every record")
        self.ask("llapi_changelog_clear", mdt.encode("ascii"), user.encode("ascii"), index, path=mdt)

    def quota(self, mount: str, kind: int, owner: int, pool: str = "") -> Quota:
        """Read the block quota of a user (0), group (1) or project (2), for the file system or one pool of OSTs."""
        query = QuotaStruct(command=_GET_POOL_QUOTA if pool else _GET_QUOTA, type=kind, id=owner,
                            pool=pool.encode("ascii"))  # fmt: skip
        self.ask("llapi_quotactl", os.fsencode(mount), byref(query), path=mount)
        return Quota(query.used_bytes, query.soft_limit_kib << 10, query.hard_limit_kib << 10,
                     query.block_valid & _LIMITS_AND_USE == _LIMITS_AND_USE)


def _fid(found: FidStruct) -> Fid:
    return Fid(found.sequence, found.object_id, found.version)


def struct_of(fid: Fid) -> FidStruct:
    return FidStruct(fid.sequence, fid.object_id, fid.version)
