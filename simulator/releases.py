"""Releases of Lustre whose parameter files the simulator can write: paths and file formats from 2.12 to 2.17.

The model renders the files of 2.17. An older release has the files at other paths, because ``lprocfs`` moved to debugfs
and sysfs step by step from 2.10 on, and it lacks later additions. Paths and formats come from the sources of the
releases, as in ``tests/captures/written-from-source``; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

RELEASES: Mapping[str, str] = {
    "2.12": "2.12.9", "2.13": "2.13.0", "2.14": "2.14.0", "2.15": "2.15.8", "2.17": "2.17.57",
}  # fmt: skip
"""Version of each release that the simulator can write."""


def number_of(version: str) -> tuple[int, int]:
    """The release of a version, by which releases are ordered.

    >>> number_of("2.17.57")
    (2, 17)
    """
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


_FORMER_READ_AHEAD = {
    "readpage_not_consecutive": "readpage not consecutive", "miss_inside_window": "miss inside window",
    "failed_grab_cache_page": "failed grab_cache_page", "failed_lock_match": "failed lock match",
    "read_but_discarded": "read but discarded", "zero_length_file": "zero length file",
    "zero_size_window": "zero size window", "readahead_to_eof": "read-ahead to EOF",
    "hit_max_readahead_issue": "hit max r-a issue", "failed_to_reach_end": "failed to reach end",
    "wrong_page_from_grab_cache_page": "wrong page from grab_cache_page",
}  # fmt: skip


def _former_read_ahead(line: re.Match[str]) -> str:
    return f"{_FORMER_READ_AHEAD[line[1]]:<25} " if line[1] in _FORMER_READ_AHEAD else line[0]


def _former_head(head: re.Match[str]) -> str:
    if head[2].endswith(":"):
        return f"{head[1]}{head[2]:<23}{head[4]}.{head[5]} (secs.nsecs)\n"
    return f"{head[1]}{head[2]:<25} {head[4]}.{head[5]} secs.nsecs\n"


_COUNTED_ONLY = "/(?:llite/.*/stats|obdfilter/.*/stats|mdt/.*/md_stats)$"
_REWRITTEN: tuple[tuple[int, str, str, str | Callable[[re.Match[str]], str]], ...] = (
    # without the histograms of job I/O, the latency of RPCs, and new counters of 2.16
    (15, "/(?:llite|osc|mdc|mds|ost)/.*stats$", r" \[(usec|sec)s\]", r" [\1]"),
    (15, "/job_stats$", r", hist: \{[^}]*\}", ""),
    (15, "/rpc_stats$", r"\n\t\t\tread\t\t\twrite\nRPC latency(?s:.*)\Z", ""),
    (15, "/statahead_stats$", r"^(?!statahead|agl).*\n", ""),
    (15, "/stats$", r"^hybrid_.*\n", ""),
    (15, "/max_cached_mb$", r"^unevict_mb.*\n", ""),
    (15, "/read_ahead_stats$", r"^(?:readahead_pages|forceread_pages) .*\n", ""),
    (15, "/read_ahead_stats$", "^failed_grab_page      ", "failed_grab_cache_page"),
    # a header of one line, of jobs in whole seconds; old names with spaces
    (14, "/job_stats$", r"snapshot_time:( +)(\d+)\.\d+ secs\.nsecs\n.*start_time.*\n.*elapsed_time.*",
     r"snapshot_time:\1\2"),
    (14, "/job_stats$", r"\b(min|max|sum): ( *\d)", r"\1:\2"),
    (14, "/changelog_users$", "^current_index:", "current index:"),
    (14, "/changelog_users$", "^ID .*$", "ID    index (idle seconds)"),
    (14, "/changelog_users$", r"^(cl\d+)\s+(\d+) \((\d+)\).*$", lambda user: f"{user[1]:<5} {user[2]} ({user[3]})"),
    (14, "/import$", r"(avg_waittime: \d+) usecs", r"\1 usec"),
    (14, "/max_cached_mb$", r"^.*read_ahead.*\n", ""),
    (14, "", r"^( *)(snapshot_time:?)( +)(\d+)\.(\d+) secs\.nsecs\n *start_time.*\n *elapsed_time.*\n", _former_head),
    (14, "/read_ahead_stats$", r"^(?:async_readahead|failed_to_fast_read|mmap_range_read) .*\n", ""),
    (14, "/read_ahead_stats$", r"^(\w+) +", _former_read_ahead),
    # without the times of operations of jobs, targets and mounts, and without sums of squares
    (13, "/job_stats$", r"^  (?:read|write):  .*\n", ""),
    (13, "/job_stats$", r", unit: +usecs,[^}]*\}", ", unit:  reqs }"),
    (13, "/job_stats$", r", sumsq: *\d+ \}", " }"),
    (13, _COUNTED_ONLY, r"^(?:read|write) .*\n", ""),
    (13, "/llite/.*/stats$", r"\[(?:usecs?|reqs)\].*$", "[regs]"),  # the misprint is in Lustre
    (13, "/(?:obdfilter/.*/stats|mdt/.*/md_stats)$", r"\[(?:usecs?|reqs)\].*$", "[reqs]"),
    (13, _COUNTED_ONLY, r"(\[bytes\] \d+ \d+ \d+) \d+$", r"\1"),
)  # fmt: skip
"""What the files of a release and of all before it have otherwise than those after it: last minor release, path, text
and its replacement. All are applied, one after the other."""


def rewrite(path: str, text: str, release: tuple[int, int]) -> tuple[str, str]:
    """Convert path and text of a file of 2.17 to a release, step by step."""
    for until, where, what, former in _REWRITTEN:
        if release <= (2, until) and re.search(where, path):
            text = re.sub(what, former, text, flags=re.MULTILINE)
    return path_in_release(path, release), text


PROCFS, SYSFS, DEBUGFS = "proc/fs/lustre/", "sys/fs/lustre/", "sys/kernel/debug/lustre/"
_MOVED_PATHS = tuple((until, root, re.compile(what)) for until, root, what in (
    ((2, 16), PROCFS, r"(?:osc|mdc)/[^/]+/(?:import|rpc_stats)"),
    ((2, 16), PROCFS, r"(?:mdt|obdfilter)/[^/]+/recovery_status|obdfilter/[^/]+/stats"),
    ((2, 14), PROCFS, r"osd-\w+/[^/]+/brw_stats"),
    ((2, 12), PROCFS, r"osd-\w+/[^/]+/nonrotational"),
    ((2, 13), PROCFS, r"mdd/[^/]+/changelog_(?:users|mask)"),
    ((2, 13), DEBUGFS, r"llite/[^/]+/max_read_ahead_(?:per_file_)?mb"),
    ((2, 12), PROCFS, r"(?:obdfilter|osd-\w+)/[^/]+/(?:blocksize|files(?:free|total)|kbytes\w+)"),
    ((2, 12), DEBUGFS, r"llite/[^/]+/statahead_max"),
))  # fmt: skip
"""Last release with the old path, root of the old path, and pattern of the parameters."""


@lru_cache(maxsize=1 << 14)
def path_in_release(path: str, release: tuple[int, int]) -> str:
    """Return the path that a file of 2.17 has in an older release.

    >>> path_in_release("sys/kernel/debug/lustre/obdfilter/lustre-OST0000/stats", (2, 15))
    'proc/fs/lustre/obdfilter/lustre-OST0000/stats'
    >>> path_in_release("sys/fs/lustre/llite/lustre-ff/statahead_max", (2, 13))
    'sys/fs/lustre/llite/lustre-ff/statahead_max'
    """
    root = next((root for root in (PROCFS, SYSFS, DEBUGFS) if path.startswith(root)), "")
    parameter = path.removeprefix(root)
    former = (folder for until, folder, what in _MOVED_PATHS if release <= until and what.fullmatch(parameter))
    return next(former, root) + parameter if root else path
