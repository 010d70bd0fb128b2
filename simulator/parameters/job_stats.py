"""``job_stats`` of a target: a block per job, with a histogram of sizes behind the byte counters."""

from __future__ import annotations

from simulator.jobstats import JobEntry, JobStats
from simulator.parameters.text import Clock
from simulator.tally import Counter, Histogram

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.@-_:/")


def job_stats_file(clock: Clock, jobs: JobStats, now: float) -> str:
    """The whole file; empty when no job is known."""
    entries = jobs.entries(now)
    return "job_stats:\n" + "".join(_block(clock, entry) for entry in entries) if entries else "job_stats:\n"


def quoted(job_id: str) -> str:
    r"""A job id as the kernel prints it: in quotes, with hex codes, when it has other than plain characters.

    >>> print(quoted("ior.1002"), quoted("we ird:x.0"))
    ior.1002 "we\x20ird:x.0"
    """
    escaped = "".join(chr(byte) if chr(byte) in _PLAIN else f"\\x{byte:02X}" for byte in job_id.encode())
    odd = escaped != job_id or ":" in job_id or job_id.startswith("@")
    return f'"{escaped}"' if odd else escaped


def _block(clock: Clock, entry: JobEntry) -> str:
    head = f"- {'job_id:':<16} {quoted(entry.job_id)}\n"
    head += clock.at(entry.latest).header(entry.stats.start_time, 16, ":", "  ")
    return head + "".join(_line(name, counter, entry.histograms.get(name)) for name, counter in entry.stats.items())


def _line(name: str, counter: Counter, histogram: Histogram | None) -> str:
    text = (
        f"  {name + ':':<16} {{ samples: {counter.samples:11}, unit: {counter.unit:>5}, min: {counter.minimum:8}, "
        f"max: {counter.maximum:8}, sum: {counter.total:16}, sumsq: {counter.squares:18}"
    )
    if histogram is not None:
        text += f", hist: {{ {_buckets(histogram)} }}"
    return text + " }\n"


def _buckets(histogram: Histogram) -> str:
    return ", ".join(f"{size_label(number)}: {count}" for number, count in enumerate(histogram.buckets) if count)


def size_label(bucket: int) -> str:
    """Upper bound of a bucket of powers of two.

    >>> size_label(12), size_label(20), size_label(3)
    ('4K', '1M', '8')
    """
    for unit, shift in (("", 0), ("K", 10), ("M", 20)):
        if bucket < shift + 10:
            return f"{1 << bucket - shift}{unit}"
    return f"{1 << bucket - 30}G"
