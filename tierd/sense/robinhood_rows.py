"""Rows of robinhood's database as what they mean: files, names of whatever bytes, and how old it all is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lustre.fid import Fid
from tierd.model import Candidate
from tierd.sense.paths import join

_COMMIT = re.compile(r"\d+:(\d+)\.\d+:")


def candidates(rows: Sequence[Sequence[Any]], directory: str) -> Iterator[Candidate]:
    """Files of one page. A row whose id is no FID (a database of another file system) is skipped."""
    for _, name, identity, _, modified, changed, created, _ in rows:
        try:
            fid = Fid.parse(text(identity))
        except ValueError:
            continue
        if label := name_of(name):
            yield Candidate(fid, join(directory, label), float(max(modified or 0, changed or 0)), float(created or 0))


def name_of(name: object) -> str:
    """A file's name, of whatever bytes; "" for what cannot be one."""
    label = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else str(name)
    return "" if "/" in label or label in {".", ".."} else label


def told_at(variables: Mapping[str, str]) -> float | None:
    """When the database was last true: the newest moment it names, of a scan's end or a changelog record.

    >>> told_at({"LastScanStartTime": "1795000000", "LastScanEndTime": "1795000600"})
    1795000600.0
    >>> told_at({"CL_LastCommit_MDT0000": "8812:1795000700.500000:1795000901.1"}), told_at({"LastScanStatus": "done"})
    (1795000700.0, None)

    Of several MDTs the one furthest behind counts. A record stands there as ``number:its time:when dealt with``.
    """
    commits = [stamp[1] for name, value in variables.items() if name.startswith("CL_LastCommit_")
               and (stamp := _COMMIT.match(value))]
    scanned = variables.get("LastScanEndTime", "")
    stamps = [*([min(map(int, commits))] if commits else []), *([int(scanned)] if scanned.isdecimal() else [])]
    return float(max(stamps)) if stamps else None


def text(value: object) -> str:
    """What the driver gives as text: columns of robinhood are binary."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
