r"""Renames by the size of the directories they touched: ``mdt.*.rename_stats``::

    rename_stats:
    - snapshot_time:  1795218506.680102544
    - start_time:     1795217454.728305704
    - elapsed_time:   1051.951796840
    - same_dir:
          32KB: { sample: 100, pct: 100, cum_pct: 100 }

The kernel prints the tables ``same_dir``, ``crossdir_src`` and ``crossdir_tgt`` if they have counted a rename. Labels
are inclusive upper bounds. Before 2.15 there is no start time, and no colon after the name of a table. A table that
does not reach 100% has lost its end, and the parser drops it.

>>> renames = parse(b"rename_stats:\n- snapshot_time:  9.5\n- same_dir:\n"
...                 b"      4KB: { sample:   2, pct:  66, cum_pct:  66 }\n"
...                 b"      8KB: { sample:   1, pct:  33, cum_pct: 100 }\n")
>>> renames.histograms
(Histogram(name=b'same_dir', uppers=(4096, 8192), columns=((2, 1),), overflow=False),)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import header
from lustre.formats.histogram import Histogram

_TITLE = re.compile(rb"\Arename_stats:[ \t]*+\n")
_TIME = re.compile(
    rb"^- (?:snapshot|elapsed|start)_time(?:[ \t]*+:)?[ \t]++[0-9.]{1,40}+[^\n]*+\n", re.MULTILINE)
_TABLE = re.compile(
    rb"^- (same_dir|crossdir_src|crossdir_tgt):?+[ \t]*+\n"
    rb"((?: ++\d{1,10}+(?:bytes|KB|MB): \{ sample: ++\d{1,20}+, pct: ++\d{1,20}+, cum_pct: ++\d{1,20}+ \}\n)+)",
    re.MULTILINE,
)
_ROW = re.compile(rb" (\d++)(bytes|KB|MB): \{ sample: ++(\d++), pct: ++\d++, cum_pct: ++(\d++) \}")
_SCALE = {b"bytes": 1, b"KB": 1 << 10, b"MB": 1 << 20}
_LAST = 1 << 31


@dataclass(frozen=True, slots=True)
class RenameStats:
    """The tables that have counted at least one rename."""

    histograms: tuple[Histogram, ...]
    """Bounds in bytes; one column."""
    skipped: int


def parse(data: bytes) -> RenameStats:
    understood = (_TITLE.match(data) is not None) + len(_TIME.findall(data))
    found: dict[bytes, Histogram] = {}
    for name, body in _TABLE.findall(data):
        rows = _ROW.findall(body)
        uppers = tuple([int(label) * _SCALE[unit] for label, unit, _, _ in rows])
        if int(rows[-1][3]) == 100 and name not in found and list(uppers) == sorted(set(uppers)):
            counts = tuple([int(count) for _, _, count, _ in rows])
            found[name] = Histogram(name, uppers, (counts,), overflow=uppers[-1] >= _LAST)
            understood += 1 + len(rows)
    return RenameStats(tuple(found.values()), header.skipped_lines(data, understood))


def after_header(data: bytes) -> bytes:
    """Return the text after the times. Two readings have the same text if nothing was counted between them."""
    return _TIME.sub(b"", data)
