"""Releases of Lustre whose parameter files the simulator can write: paths and file formats from 2.12 to 2.17.

The model renders the files of 2.17. An older release has the files at other paths, because ``lprocfs`` moved to debugfs
and sysfs step by step from 2.10 on, and it lacks later additions. Paths and formats come from the sources of the
releases, as in ``tests/captures/written-from-source``; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

_LATENCY = re.compile(r"\n\t\t\tread\t\t\twrite\nRPC latency.*\Z", re.DOTALL)
_TIMED_BY_USEC = re.compile(r"/(?:llite|osc|mdc|mds|ost)/.*stats$")
_HEAD = re.compile(
    r"^( *)(snapshot_time:?)( +)(\d+)\.(\d+) secs\.nsecs\n *start_time.*\n *elapsed_time.*\n", re.MULTILINE
)
_JOB_HEAD = re.compile(r"snapshot_time:( +)(\d+)\.\d+ secs\.nsecs\n.*start_time.*\n.*elapsed_time.*")
_USER = re.compile(r"^(cl\d+)\s+(\d+) \((\d+)\).*$", re.MULTILINE)
_FORMER_READ_AHEAD = {
    "readpage_not_consecutive": "readpage not consecutive", "miss_inside_window": "miss inside window",
    "failed_grab_cache_page": "failed grab_cache_page", "failed_lock_match": "failed lock match",
    "read_but_discarded": "read but discarded", "zero_length_file": "zero length file",
    "zero_size_window": "zero size window", "readahead_to_eof": "read-ahead to EOF",
    "hit_max_readahead_issue": "hit max r-a issue", "failed_to_reach_end": "failed to reach end",
    "wrong_page_from_grab_cache_page": "wrong page from grab_cache_page",
}  # fmt: skip
_LATER_READ_AHEAD = re.compile(r"^(?:async_readahead|failed_to_fast_read|mmap_range_read) .*\n", re.MULTILINE)
_COUNTED_ONLY = re.compile(r"/(?:llite/.*/stats|obdfilter/.*/stats|mdt/.*/md_stats)$")
_LATER_JOB_LINES = re.compile(r"  (?:read|write):  .*\n")


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


def rewrite(path: str, text: str, release: tuple[int, int]) -> tuple[str, str]:
    """Convert path and text of a file of 2.17 to a release, step by step."""
    name = path.rpartition("/")[2]
    for until, rewritten in ((15, _to_2_15), (14, _to_2_14), (13, _to_2_13)):
        if release <= (2, until):
            text = rewritten(path, name, text)
    return path_in_release(path, release), text


def _to_2_15(path: str, name: str, text: str) -> str:
    """Remove from 2.16 and later: histograms of job I/O, latency of RPCs, and new counters."""
    if _TIMED_BY_USEC.search(path):
        text = text.replace(" [usecs]", " [usec]").replace(" [secs]", " [sec]")
    if name == "job_stats":
        return re.sub(r", hist: \{[^}]*\}", "", text)
    if name == "rpc_stats":
        return _LATENCY.sub("", text)
    if name == "statahead_stats":
        return _lines(text, lambda line: line.startswith(("statahead", "agl")))
    if name == "stats":
        return _lines(text, lambda line: not line.startswith("hybrid_"))
    if name == "max_cached_mb":
        return _lines(text, lambda line: not line.startswith("unevict_mb"))
    if name == "read_ahead_stats":
        text = re.sub(r"^(?:readahead_pages|forceread_pages) .*\n", "", text, flags=re.MULTILINE)
        return re.sub("^failed_grab_page      ", "failed_grab_cache_page", text, flags=re.MULTILINE)
    return text


def _to_2_14(_: str, name: str, text: str) -> str:
    """Reduce the header to one line, of jobs in whole seconds; use the old names with spaces."""
    if name == "job_stats":
        return re.sub(r"\b(min|max|sum): ( *\d)", r"\1:\2", _JOB_HEAD.sub(r"snapshot_time:\1\2", text))
    if name == "changelog_users":
        text = text.replace("current_index:", "current index:")
        text = re.sub(r"^ID .*$", "ID    index (idle seconds)", text, flags=re.MULTILINE)
        return _USER.sub(lambda user: f"{user[1]:<5} {user[2]} ({user[3]})", text)
    if name == "import":
        return re.sub(r"(avg_waittime: \d+) usecs", r"\1 usec", text)
    if name == "max_cached_mb":
        return _lines(text, lambda line: "read_ahead" not in line)
    text = _HEAD.sub(_former_head, text)
    if name == "read_ahead_stats":
        text = _LATER_READ_AHEAD.sub("", text)
        for later, former in _FORMER_READ_AHEAD.items():
            text = re.sub(rf"^{later} +", f"{former:<25} ", text, flags=re.MULTILINE)
    return text


def _to_2_13(path: str, name: str, text: str) -> str:
    """Remove the times of operations of jobs, targets and mounts, and all sums of squares."""
    if name == "job_stats":
        text = re.sub(r", unit: +usecs,[^}]*\}", ", unit:  reqs }", _LATER_JOB_LINES.sub("", text))
        return re.sub(r", sumsq: *\d+ \}", " }", text)
    if _COUNTED_ONLY.search(path):
        text = re.sub(r"^(?:read|write) .*\n", "", text, flags=re.MULTILINE)
        requests = "regs" if "/llite/" in path else "reqs"  # the misprint is in Lustre
        text = re.sub(r"\[(?:usecs?|reqs)\].*$", f"[{requests}]", text, flags=re.MULTILINE)
        return re.sub(r"(\[bytes\] \d+ \d+ \d+) \d+$", r"\1", text, flags=re.MULTILINE)
    return text


def _former_head(head: re.Match[str]) -> str:
    if head[2].endswith(":"):
        return f"{head[1]}{head[2]:<23}{head[4]}.{head[5]} (secs.nsecs)\n"
    return f"{head[1]}{head[2]:<25} {head[4]}.{head[5]} secs.nsecs\n"


def _lines(text: str, wanted: Callable[[str], bool]) -> str:
    return "".join(filter(wanted, text.splitlines(keepends=True)))


PROCFS, SYSFS, DEBUGFS = "proc/fs/lustre/", "sys/fs/lustre/", "sys/kernel/debug/lustre/"
_MOVED_PATHS = tuple((until, root, re.compile(what)) for until, root, what in (
    ((2, 16), PROCFS, r"(?:osc|mdc)/[^/]+/(?:import|rpc_stats|state)"),
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
