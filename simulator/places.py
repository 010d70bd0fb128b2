"""Where parameters lay in older releases: ``lprocfs`` moved to debugfs and sysfs step by step, from 2.10 on.

The model puts files where 2.17 has them. The places are those of the releases' sources, as in
``tests/captures/written-from-source``; a test compares them.
"""

from __future__ import annotations

import re

PROCFS, SYSFS, DEBUGFS = "proc/fs/lustre/", "sys/fs/lustre/", "sys/kernel/debug/lustre/"
_MOVED = tuple((until, root, re.compile(what)) for until, root, what in (
    ((2, 16), PROCFS, r"(?:osc|mdc)/[^/]+/(?:import|rpc_stats|state)"),
    ((2, 16), PROCFS, r"(?:mdt|obdfilter)/[^/]+/recovery_status|obdfilter/[^/]+/stats"),
    ((2, 14), PROCFS, r"osd-\w+/[^/]+/brw_stats"),
    ((2, 13), PROCFS, r"mdd/[^/]+/changelog_(?:users|mask)"),
    ((2, 13), DEBUGFS, r"llite/[^/]+/max_read_ahead_(?:per_file_)?mb"),
    ((2, 12), PROCFS, r"(?:obdfilter|osd-\w+)/[^/]+/(?:blocksize|files(?:free|total)|kbytes\w+)"),
    ((2, 12), DEBUGFS, r"llite/[^/]+/statahead_max"),
))  # fmt: skip
"""The last release that had them there, the root there, and which parameters."""


def moved(path: str, release: tuple[int, int]) -> str:
    """Where a file of 2.17 was in an older release.

    >>> moved("sys/kernel/debug/lustre/obdfilter/lustre-OST0000/stats", (2, 15))
    'proc/fs/lustre/obdfilter/lustre-OST0000/stats'
    >>> moved("sys/fs/lustre/llite/lustre-ff/statahead_max", (2, 13))
    'sys/fs/lustre/llite/lustre-ff/statahead_max'
    """
    root = next((root for root in (PROCFS, SYSFS, DEBUGFS) if path.startswith(root)), "")
    parameter = path.removeprefix(root)
    former = (there for until, there, what in _MOVED if release <= until and what.fullmatch(parameter))
    return next(former, root) + parameter if root else path
