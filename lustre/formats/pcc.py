r"""Backends of the persistent client cache (PCC) of a mount: ``llite.*.pcc``. The file is empty without a backend::

    pcc:
      -
        pccpath: /mnt/pcc
        hsmtool: posix
        rwid: 2
        roid: 2
        flags: 1b
        autocache: projid={500 1000}&fname={*.h5}

>>> parse(b"pcc:\n  -\n    pccpath: /mnt/pcc\n    hsmtool: posix\n    rwid: 2\n    roid: 3\n    flags: 1b\n"
...       b"    autocache: uid={0}\n").rows
(Backend(path=b'/mnt/pcc', read_write_id=2, read_only_id=3),)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import header
from lustre.formats.rows import Rows

_TITLE = re.compile(rb"\Apcc:[ \t]*+\n")
_BACKEND = re.compile(
    rb"^  -[ \t]*+\n    pccpath: ([^\n]++)\n(?:    hsmtool: [^\n]*+\n)?    rwid: (\d{1,10}+)\n    roid: (\d{1,10}+)\n"
    rb"    flags: [0-9a-f]{1,8}+\n    autocache: [^\n]*+\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Backend:
    """A local file system that caches files of the mount."""

    path: bytes
    read_write_id: int
    """Archive id of files cached for reading and writing; 0 if this mode is off."""
    read_only_id: int
    """Archive id of files cached for reading; 0 if this mode is off."""


def parse(data: bytes) -> Rows[Backend]:
    title = _TITLE.match(data)
    rows = {row[1]: row for row in _BACKEND.finditer(data)}  # by path, because Lustre adds no path twice
    backends = tuple([Backend(path, int(row[2]), int(row[3])) for path, row in rows.items()])
    return Rows(backends, header.skipped_lines(data, bool(title) + sum([row[0].count(b"\n") for row in rows.values()])))
