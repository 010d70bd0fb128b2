"""The counters of the model, as Lustre 2.17 keeps them: ``stats`` files, histograms, ``job_stats`` and ``brw_stats``.

A counter holds samples with minimum, maximum, sum and sum of squares. A histogram has 32 buckets. The constants
``..._STATS`` list the counters of each stats file in the order in which the kernel prints them.

>>> stats = Stats((("write_bytes", "bytes", STDDEV), ("ioctl", "reqs", COUNT)), start_time=0.0)
>>> stats.tally("write_bytes", 4096)
>>> stats.tally("write_bytes", 8192)
>>> counter = stats["write_bytes"]
>>> counter.samples, counter.minimum, counter.maximum, counter.total
(2, 4096, 8192, 12288)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

COUNT, MINMAX, STDDEV = 0, 1, 2
"""Details of a counter: only samples; also minimum, maximum and sum; also the sum of squares."""
CounterList: TypeAlias = tuple[tuple[str, str, int], ...]
"""Counters of one stats file in the kernel's order: name, unit, detail."""
BUCKETS = 32


class Counter:
    """One line of a stats file."""

    __slots__ = ("detail", "maximum", "minimum", "samples", "squares", "total", "unit")

    def __init__(self, unit: str, detail: int) -> None:
        self.unit = unit
        self.detail = detail
        self.samples = self.minimum = self.maximum = self.total = self.squares = 0

    def tally(self, value: int) -> None:
        if value < self.minimum or not self.samples:
            self.minimum = value
        if value > self.maximum:  # noqa: PLR1730 -- called for everything that happens; max() takes three times as long
            self.maximum = value
        self.samples += 1
        self.total += value
        self.squares += value * value

    def bulk(self, samples: int, value: int) -> None:
        if samples == 1:
            self.tally(value)
        elif samples > 0:
            self.minimum = min(self.minimum, value) if self.samples else value
            self.maximum = max(self.maximum, value)
            self.samples += samples
            self.total += samples * value
            self.squares += samples * value * value

    def join(self, other: Counter) -> None:
        """Add the samples of another counter, for a sum over several targets."""
        if other.samples:
            self.minimum = min(self.minimum, other.minimum) if self.samples else other.minimum
            self.maximum = max(self.maximum, other.maximum)
        self.samples += other.samples
        self.total += other.total
        self.squares += other.squares


class Stats(dict[str, Counter]):
    """The counters of one stats file since ``start_time`` (virtual seconds).

    All counters are there by name in the kernel's order, including those without samples.
    """

    __slots__ = ("start_time",)

    def __init__(self, shape: CounterList, start_time: float) -> None:
        super().__init__((name, Counter(unit, detail)) for name, unit, detail in shape)
        self.start_time = start_time

    def tally(self, name: str, value: int = 1) -> None:
        self[name].tally(value)

    def count(self, name: str, samples: int) -> None:
        self[name].samples += samples


class Histogram:
    """32 buckets, linear or by powers of two."""

    __slots__ = ("buckets",)

    def __init__(self) -> None:
        self.buckets = [0] * BUCKETS

    def tally(self, value: int) -> None:
        self.buckets[value if value < BUCKETS else BUCKETS - 1] += 1

    def tally_log2(self, value: int, samples: int = 1) -> None:
        """Count a value by powers of two: bucket i holds values above 2^(i-1) up to 2^i."""
        bucket = (value - 1).bit_length() if value else 0
        self.buckets[bucket if bucket < BUCKETS else BUCKETS - 1] += samples

    @property
    def total(self) -> int:
        return sum(self.buckets)


def microseconds(seconds: float) -> int:
    return round(seconds * 1_000_000)


def _counters(unit: str, detail: int, names: str) -> CounterList:
    return tuple((name, unit, detail) for name in names.split())


_usecs, _bytes = partial(_counters, "usecs", STDDEV), partial(_counters, "bytes", STDDEV)
_reqs, _pages = partial(_counters, "reqs", COUNT), partial(_counters, "pages", COUNT)
LLITE_STATS: CounterList = (
    *_bytes("read_bytes write_bytes cached_read_bytes hybrid_read_bytes hybrid_write_bytes"),
    *_usecs("read write"),
    *_reqs("ioctl"),
    *_usecs("open close mmap page_fault page_mkwrite seek fsync readdir setattr truncate flock getattr"),
    *_usecs("create link unlink symlink mkdir rmdir mknod rename statfs setxattr getxattr"),
    *_reqs("getxattr_hits"),
    *_usecs("listxattr removexattr inode_permission fallocate"),
    ("opencount", "reqs", STDDEV),
    *_usecs("openclosetime"),
    *_reqs("hybrid_noswitch hybrid_writesize_switch hybrid_readsize_switch"),
)
READ_AHEAD_STATS: CounterList = (
    *_pages("hits misses readpage_not_consecutive miss_inside_window failed_grab_page failed_lock_match"),
    *_pages("read_but_discarded zero_length_file zero_size_window readahead_to_eof hit_max_readahead_issue"),
    *_pages("wrong_page_from_grab_cache_page failed_to_reach_end async_readahead failed_to_fast_read mmap_range_read"),
    *_counters("pages", MINMAX, "readahead_pages forceread_pages"),
)
STATAHEAD_COUNTERS = ("statahead total", "statahead wrong", "agl total", "list_total", "fname_total", "hit_total",
                      "miss_total")
_REQUEST: CounterList = (*_usecs("req_waittime"), ("req_active", "reqs", STDDEV))
OSC_STATS: CounterList = (
    *_REQUEST,
    *_counters("reqs", STDDEV, "ldlm_glimpse_enqueue ldlm_extent_enqueue"),
    *_bytes("read_bytes write_bytes"),
    *_usecs("ost_setattr ost_read ost_write ost_create ost_destroy ost_connect ost_statfs ost_sync ldlm_cancel"),
    *_usecs("obd_ping"),
)
MDC_STATS: CounterList = (
    *_REQUEST,
    ("ldlm_ibits_enqueue", "reqs", STDDEV),
    *_usecs("mds_getattr mds_getattr_lock mds_close mds_connect mds_get_root mds_statfs mds_sync mds_getxattr"),
    *_usecs("ldlm_cancel obd_ping seq_query fld_query"),
)
MDC_MD_STATS: CounterList = _reqs(
    "close create enqueue getattr intent_lock link rename setattr fsync read_page unlink setxattr getxattr "
    "intent_getattr_async revalidate_lock"
)
OST_STATS: CounterList = (
    *_bytes("read_bytes write_bytes"),
    *_usecs("read write getattr setattr punch sync destroy create statfs get_info set_info quotactl prealloc"),
)
MDT_STATS: CounterList = (
    *_usecs("open close mknod link unlink mkdir rmdir rename getattr setattr getxattr setxattr statfs sync"),
    *_usecs("samedir_rename parallel_rename_file parallel_rename_dir crossdir_rename rename_trylocks read write"),
    *_bytes("read_bytes write_bytes"),
    *_usecs("punch migrate fallocate readpage"),
)
_SERVICE: CounterList = (
    *_usecs("req_waittime"),
    *_counters("reqs", STDDEV, "req_qdepth req_active"),
    ("req_timeout", "secs", STDDEV),
    ("reqbuf_avail", "bufs", STDDEV),
)
OST_IO_STATS: CounterList = (*_SERVICE, *_usecs("ost_read ost_write ost_punch"))
CLEANUP_SECONDS = 600.0
JOB_ID_BYTES_MAX = 31


class JobEntry:
    """One job on one target."""

    __slots__ = ("histograms", "job_id", "latest", "stats")

    def __init__(self, job_id: str, shape: CounterList, now: float) -> None:
        self.job_id = job_id
        self.stats = Stats(shape, now)
        self.latest = now
        self.histograms = {name: Histogram() for name, unit, _ in shape if unit == "bytes"}

    def bulk(self, name: str, samples: int, value: int) -> None:
        self.stats[name].bulk(samples, value)
        if name in self.histograms:
            self.histograms[name].tally_log2(value, samples)


class JobStats:
    """Entries of jobs, in the order of their first operation."""

    def __init__(self, shape: CounterList, lists_again: bool = True) -> None:
        """``lists_again``: a job whose entry was cleaned up gets a new one. A real MDT of 2.17.57 once made none."""
        self._shape = shape
        self._lists_again = lists_again
        self._entries: dict[str, JobEntry] = {}
        self._cleaned_up: set[str] = set()

    def bulk(self, job_id: str, name: str, samples: int, value: int, now: float) -> None:
        """Count operations of a job. An empty job id is not counted."""
        if job_id and samples > 0 and (entry := self._entry(job_id, now)) is not None:
            entry.bulk(name, samples, value)

    def clear(self, job_id: str) -> None:
        """Clean up the entry of a job, as a write of its id to the file does."""
        if self._entries.pop(job_id, None) is not None:
            self._cleaned_up.add(job_id)

    def _entry(self, job_id: str, now: float) -> JobEntry | None:
        """Entry of a job that does something now; None if the target lists it no more."""
        entry = self._entries.get(job_id)
        if entry is None or now - entry.latest > CLEANUP_SECONDS:
            self.clear(job_id)
            if job_id in self._cleaned_up and not self._lists_again:
                return None
            entry = self._entries[job_id] = JobEntry(job_id[:JOB_ID_BYTES_MAX], self._shape, now)
        entry.latest = now
        return entry

    def entries(self, now: float) -> tuple[JobEntry, ...]:
        for job_id in [job_id for job_id, entry in self._entries.items() if now - entry.latest > CLEANUP_SECONDS]:
            self.clear(job_id)
        return tuple(self._entries.values())


RPC_TABLES: Mapping[str, tuple[str, int | None]] = {
    "pages": ("pages per rpc         rpcs", 0), "in_flight": ("rpcs in flight        rpcs", None),
    "offset": ("offset                rpcs", 1), "latency": ("RPC latency (us)       count", 1),
}  # fmt: skip
"""Tables of ``rpc_stats`` of an osc: title, and the shift of its labels, which are powers of two; None for numbers."""
PAGE_BYTES = 4096
BRW_TABLES: tuple[tuple[str, str, bool], ...] = (
    ("pages per bulk r/w", "rpcs", True),
    ("discontiguous pages", "rpcs", False),
    ("discontiguous blocks", "rpcs", False),
    ("disk fragmented I/Os", "ios", False),
    ("disk I/Os in flight", "ios", False),
    ("I/O time (1/1000s)", "ios", True),
    ("disk I/O size", "ios", True),
    ("block maps msec", "maps", True),
)
"""Title, unit, and whether the buckets are powers of two."""


class BrwStats:
    """Eight histograms for reads, eight for writes. Three are one, because each fragment is one I/O in the model."""

    def __init__(self, start_time: float) -> None:
        self.start_time = start_time
        self.sides = [{title: Histogram() for title, _, _ in BRW_TABLES} for _ in ("reads", "writes")]
        for side in self.sides:
            side["discontiguous blocks"] = side["disk fragmented I/Os"] = side["discontiguous pages"]

    def begin(self, write: bool, size_bytes: int, fragments: int, in_flight: int) -> None:
        """Count the start of an RPC's I/O, one I/O per fragment; ``in_flight`` includes the first."""
        side = self.sides[write]
        side["pages per bulk r/w"].tally_log2(-(-size_bytes // PAGE_BYTES))
        side["discontiguous pages"].tally(fragments)
        side["block maps msec"].buckets[0] += 1
        for number in range(fragments):
            side["disk I/Os in flight"].tally(in_flight + number)
            side["disk I/O size"].tally_log2(size_bytes // fragments)

    def end(self, write: bool, seconds: float) -> None:
        """Count the end of an RPC's I/O."""
        self.sides[write]["I/O time (1/1000s)"].tally_log2(int(seconds * 1000))
