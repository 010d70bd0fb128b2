"""The recorded tapes with one change in the bytes of their files, so that the parsers are tested too.

Counters are changed as they stand, which only ever grow; so what is made of them grows as well.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from lustre.changelog.record import Record, decode
from lustre.formats import job_stats
from lustre.formats.job_stats import Job
from lustre.unpack import unpack
from simulator.servers.changelog_bytes import encode

TAPES = Path(__file__).parent.parent / "tapes"
JUDGED_BY = re.compile(r"^changelog|/job_stats$|/lod/[^/]*/pools/|/(degraded|recovery_status)$|/obdfilter/[^/]*/kbytes")
ENOUGH = 20
"""Snapshots of the essential part: 45 s alone, 50 s of noise."""
UNITS = ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"))


def same(entry: Job) -> Iterable[Job]:
    return (entry,)


@dataclass(frozen=True)
class Variation:
    """What becomes of entries of ``job_stats``, of records, of names in the description, and which snapshots stay."""

    entries: Callable[[Job], Iterable[Job]] = same
    records: Callable[[Record], Iterable[Record]] = lambda record: (record,)
    described: Callable[[str], str] = str
    """Of the description of the tape as JSON, and of names and contents of the other files."""
    keeps: Callable[[int], bool] = lambda n: n < ENOUGH
    adds: Callable[[str], Iterable[Job]] = field(default=lambda _: ())
    """Further entries for a file of job statistics, by its path below the tape."""


def write(source: Path, folder: Path, variation: Variation) -> Path:
    """The unpacked tape as the variation has it, below an empty folder."""
    meta: dict[str, Any] = json.loads(variation.described((source / "tape.json").read_text()))
    kept = [n for n in range(len(meta["snapshot_times"])) if variation.keeps(n)]
    for file in source.glob("changelog-*.bin"):
        records, _ = decode(file.read_bytes())
        varied = [encode(new) for record in records for new in variation.records(record)]
        (folder / file.name).write_bytes(b"".join(varied))
    for new, old in enumerate(kept):
        for file in (source / f"{old:03d}").rglob("*"):
            if file.is_file():
                name = str(file.relative_to(source))
                to = folder / f"{new:03d}" / variation.described(name.partition("/")[2])
                to.parent.mkdir(parents=True, exist_ok=True)
                if file.name == "job_stats":
                    entries = [*job_stats.parse(file.read_bytes()).jobs, *variation.adds(name)]
                    to.write_bytes(printed(made for entry in entries for made in variation.entries(entry)))
                elif "/pools/" in name:
                    to.write_text(variation.described(file.read_text()))
                else:
                    to.hardlink_to(file)
    (folder / "tape.json").write_text(json.dumps({**meta, "snapshot_times": [meta["snapshot_times"][n] for n in kept]}))
    return folder


@cache
def unpacked(name: str, below: Path) -> Path:
    """A tape of the repository, unpacked once below a folder: what a replay judges by."""
    folder = below / name
    unpack(TAPES / name / "tape.tar.xz", folder, lambda member: JUDGED_BY.search(member) is not None)
    (folder / "tape.json").write_bytes((TAPES / name / "tape.json").read_bytes())
    return folder


def printed(entries: Iterable[Job]) -> bytes:
    """Job statistics as 2.17 prints them."""
    return b"job_stats:\n" + b"".join(b"".join(_lines(entry)) for entry in entries)


def _lines(entry: Job) -> Iterator[bytes]:
    odd = any((not chr(byte).isalnum() and byte not in b"._-@:/%,") or byte > 126 for byte in entry.job_id)
    text = "".join(chr(b) if 32 < b < 127 and b not in b'"\\' else f"\\x{b:02X}" for b in entry.job_id)
    yield f'- job_id:          "{text}"\n'.encode() if odd else b"- job_id:          " + entry.job_id + b"\n"
    yield b"  snapshot_time:   " + entry.snapshot_time + b" secs.nsecs\n"
    yield b"  start_time:      " + entry.start_time + b" secs.nsecs\n"
    sizes = dict(entry.histograms)
    for name, samples, unit, total in zip(entry.names, entry.samples, entry.units, entry.sums, strict=True):
        buckets = ", ".join(f"{label(upper)}: {count}" for upper, count in sizes.get(name, ()))
        hist = f", hist: {{ {buckets} }}".encode() if buckets else b""
        yield b"  %s: { samples: %s, unit: %s, min: 0, max: 0, sum: %s, sumsq: 0%s }\n" % (
            name, samples, unit, total or b"0", hist)


def label(upper: int) -> str:
    """Of a bucket of sizes.

    >>> label(4096), label(1 << 20), label(512)
    ('4K', '1M', '512')
    """
    return next((f"{upper // unit}{letter}" for unit, letter in UNITS if upper >= unit), str(upper))


def part(entry: Job, number: int, of: int) -> Job:
    """The number-th of so many shares of what an entry counts; together they are the entry."""
    def share(count: int) -> int:
        return (count + number) // of

    return counted(entry, share, share)


def counted(entry: Job, operations: Callable[[int], int], amounts: Callable[[int], int],
            upper: Callable[[int], int] = int) -> Job:
    """The entry with other counts, other sums and other sizes."""
    return replace(
        entry, samples=tuple(b"%d" % operations(int(n)) for n in entry.samples),
        sums=tuple(b"%d" % amounts(int(n or 0)) for n in entry.sums),
        histograms=tuple((name, tuple((upper(size), operations(n)) for size, n in sizes))
                         for name, sizes in entry.histograms))
