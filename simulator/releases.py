"""Releases of Lustre whose parameter files the simulator can lay out: where they lie, and how they were written then.

The model renders files as 2.17 has them; an older release has them elsewhere, without what came later. Places and
formats are those of the releases' sources (``lprocfs`` moved to debugfs and sysfs step by step from 2.10 on).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Rewrite = Callable[[str, str], tuple[str, str] | None]
"""Path and text of a file to those of another release; None where that release has no such file."""

_DEBUGFS, _PROCFS = "sys/kernel/debug/lustre/", "proc/fs/lustre/"
_IN_PROCFS = tuple(f"{_DEBUGFS}{kind}" for kind in ("obdfilter/", "osd-", "mdt/", "mdd/", "osc/", "mdc/"))
"""What lay below ``/proc`` up to 2.15; mounts and services were in debugfs, single values in sysfs already."""
_LATER_JOB_LINES = re.compile(r"  (?:read|write):  .*\n")
_JOB_LINE = re.compile(
    r"  (?P<name>[a-z_]+:)(?P<pad> +)\{ samples: (?P<samples> *\d+), unit: +(?P<unit>\w+), min: (?P<min> *\d+), "
    r"max: (?P<max> *\d+), sum: (?P<sum> *\d+), sumsq: (?P<sumsq> *\d+)(?:, hist: \{[^}]*\})? \}"
)
_HEAD = re.compile(
    r"^( *)(snapshot_time:?)( +)(\d+)\.(\d+) secs\.nsecs\n *start_time.*\n *elapsed_time.*\n", re.MULTILINE
)
_JOB_HEAD = r"snapshot_time:( +)(\d+)\.\d+ secs\.nsecs\n.*start_time.*\n.*elapsed_time.*"
_LATENCY = re.compile(r"\n\t\t\tread\t\t\twrite\nRPC latency.*\Z", re.DOTALL)
_FORMER_READ_AHEAD = {
    "readpage_not_consecutive": "readpage not consecutive", "miss_inside_window": "miss inside window",
    "failed_grab_page": "failed grab_cache_page", "failed_lock_match": "failed lock match",
    "read_but_discarded": "read but discarded", "zero_length_file": "zero length file",
    "zero_size_window": "zero size window", "readahead_to_eof": "read-ahead to EOF",
    "hit_max_readahead_issue": "hit max r-a issue", "failed_to_reach_end": "failed to reach end",
    "wrong_page_from_grab_cache_page": "wrong page from grab_cache_page",
}  # fmt: skip
_LATER_READ_AHEAD = re.compile(
    r"^(?:async_readahead|failed_to_fast_read|mmap_range_read|readahead_pages|forceread_pages) .*\n", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Release:
    """One release."""

    version: str
    rewrite: Rewrite


def _as_it_is(path: str, text: str) -> tuple[str, str] | None:
    return path, text


def _to_2_15(path: str, text: str) -> tuple[str, str] | None:
    """Sizes of job I/O have no histogram, RPCs no latency, counters none of the names of later releases."""
    if path.startswith(_IN_PROCFS):
        path = _PROCFS + path.removeprefix(_DEBUGFS)
    name = path.rpartition("/")[2]
    if name == "job_stats":
        text = re.sub(r", hist: \{[^}]*\}", "", text)
    elif name == "rpc_stats":
        text = _LATENCY.sub("", text)
    elif name == "statahead_stats":
        text = "".join(line for line in text.splitlines(keepends=True) if line.startswith(("statahead", "agl")))
    elif name == "stats":
        text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("hybrid_"))
    elif name == "read_ahead_stats":
        text = re.sub(r"^(?:readahead_pages|forceread_pages) .*\n", "", text, flags=re.MULTILINE)
        text = re.sub("^failed_grab_page      ", "failed_grab_cache_page", text, flags=re.MULTILINE)
    return path, text


def _to_2_12(path: str, text: str) -> tuple[str, str] | None:
    """One line of time on top; job I/O in bytes only, operations as requests; names with spaces."""
    rewritten = _to_2_15(path, text)
    if rewritten is None:
        return None
    path, text = rewritten
    if path.endswith("/job_stats"):
        return path, _old_jobs(text)
    text = _HEAD.sub(lambda head: f"{head[1]}{head[2]:<25} {head[4]}.{head[5]} secs.nsecs\n", text)
    if path.endswith("/read_ahead_stats"):
        text = _LATER_READ_AHEAD.sub("", text).replace("failed_grab_cache_page", "failed_grab_page")
        for name, former in _FORMER_READ_AHEAD.items():
            text = re.sub(rf"^{name} +", f"{former:<25} ", text, flags=re.MULTILINE)
    return path, text


def _old_jobs(text: str) -> str:
    text = re.sub(_JOB_HEAD, r"snapshot_time:\1\2", text)
    return _JOB_LINE.sub(_old_job_line, _LATER_JOB_LINES.sub("", text))


def _old_job_line(line: re.Match[str]) -> str:
    head = f"  {line['name']}{line['pad']}{{ samples: {line['samples']}, unit: "
    if line["unit"] != "bytes":
        return f"{head} reqs }}"
    return f"{head}{line['unit']:>5}, min:{line['min']}, max:{line['max']}, sum:{line['sum']} }}"


RELEASES: Mapping[str, Release] = {
    "2.12": Release("2.12.9", _to_2_12),
    "2.15": Release("2.15.8", _to_2_15),
    "2.17": Release("2.17.57", _as_it_is),
}


def of(version: str) -> Release:
    """The release of a version: the newest known that is not newer.

    >>> of("2.17.57").version, of("2.14.0").version, of("2.12.9").version
    ('2.17.57', '2.12.9', '2.12.9')
    """
    wanted = _numbers(version)
    fitting = [release for name, release in RELEASES.items() if _numbers(name) <= wanted[:2]]
    return fitting[-1] if fitting else RELEASES["2.12"]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
