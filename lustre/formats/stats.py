r"""Counters in Lustre's most common form: ``stats``, ``md_stats``, service statistics.

llite, osc, mdc, obdfilter, mdt, osd and the services use it. The file has one line per counter that was ever used::

    snapshot_time                       1795218508.752159935 secs.nsecs
    start_time                          1795217463.183879238 secs.nsecs
    elapsed_time                        1045.568280697 secs.nsecs
    req_waittime                        3894 samples [usecs] 139 511438 35473947 2215597260185
    write_bytes                         206 samples [bytes] 4096 4194304 163282944 620728470732800
    ioctl                               2975 samples [reqs]

The numbers are samples, minimum, maximum, sum and sum of squares. A counter that only counts events has only samples.
The kernel adds in signed 64 bits: a sum or minimum may have wrapped and be negative. The sum of squares wraps early, so
the parser ignores it. A line whose number of samples is beyond 63 bits is skipped.

The column of names is 25 characters wide up to 2.17.0 and 35 after it; a longer name shifts the rest of its line.
Before 2.15 some names had spaces ("thandle open", "readpage not consecutive"). The parser replaces them with
underscores, as later releases print them.

>>> stats = parse(b"snapshot_time   9.5 secs.nsecs\nread_bytes   2 samples [bytes] 4096 8192 12288 83886080\n"
...               b"ioctl   3 samples [regs]\n")
>>> stats.names, stats.samples, stats.units, stats.sums
((b'read_bytes', b'ioctl'), (b'2', b'3'), (b'bytes', b'reqs'), (b'12288', b''))
>>> stats.counter(b"read_bytes")
Counter(samples=2, unit=b'bytes', sum=12288)

``outline_of`` makes an outline of a text, with which the C module reads the numbers of later texts of the same form
(``lustre.formats.outline``).

>>> text = b"req_waittime     7 samples [usecs] 1 9 30 900\n"
>>> outline_of(text, [1, 0]).text  # the sum, then the samples
b'req_waittime \x17\x0f samples [usecs] \x15 \x15 \x0f \x15\n'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lustre.formats import header, outline
from lustre.formats.opcodes import Opcode
from lustre.formats.outline import Outline, Place

COUNTER = re.compile(
    rb"^(\S++(?: (?!\d{1,20}+ samples)\S++)*)[ \t]++(\d{1,20}+) samples \[([^\]\s]*+)\]"
    rb"(?: (-?+\d{1,20}+) (-?+\d{1,20}+) (-?+\d{1,20}+)(?: -?+\d{1,20}+)?)?[ \t]*+\n",
    re.MULTILINE,
)
_UNITS = {b"usec": b"usecs", b"sec": b"secs", b"regs": b"reqs", b"req": b"reqs", b"byte": b"bytes", b"page": b"pages"}


@dataclass(frozen=True, slots=True)
class Counter:
    """The numbers of one counter; the sum is 0 if the kernel does not print it."""

    samples: int
    unit: bytes
    sum: int


@dataclass(frozen=True, slots=True)
class Stats:
    """The file in columns. Numbers are digits as printed, or empty if the kernel prints no number."""

    start_time: bytes
    names: tuple[bytes, ...]
    samples: tuple[bytes, ...]
    units: tuple[bytes, ...]
    sums: tuple[bytes, ...]
    skipped: int

    def count(self, name: bytes) -> int:
        """Samples of a counter; 0 if it was never used."""
        return int(self.samples[self.names.index(name)]) if name in self.names else 0

    def counter(self, name: bytes) -> Counter | None:
        if name not in self.names:
            return None
        i = self.names.index(name)
        return Counter(int(self.samples[i]), self.units[i], int(self.sums[i] or 0))


def parse(data: bytes) -> Stats:
    head = header.split(data)
    rows = [row for row in COUNTER.findall(data, head.end) if not header.is_beyond(row[1])]
    skipped = header.skipped_lines(data, head.lines + len(rows))
    if not rows:
        return Stats(head.start_time, (), (), (), (), skipped=skipped)
    names, samples, units, _, _, sums = zip(*rows, strict=True)
    if b" " in b"".join(names):
        names = tuple([name.replace(b" ", b"_") for name in names])
    units = tuple([_UNITS.get(unit, unit) for unit in units])
    return Stats(head.start_time, names, samples, units, sums, skipped=skipped)


_OF_SQUARES = re.compile(rb" (-?\d{1,20})")
CLIPPED = b"9223372036854775807"
"""A sum that the kernel clipped at 64 bits. It is invalid."""


def is_no_sum(digits: bytes) -> bool:
    """Whether a sum has wrapped, was clipped by the kernel, or is beyond any counter."""
    return digits[:1] == b"-" or digits == CLIPPED or header.is_beyond(digits)


def outline_of(data: bytes, wanted: Sequence[int]) -> Outline | None:
    """Make the outline of a text in which every line is a counter.

    ``wanted`` lists the values to extract, in this order. Each is an index into the samples of all counters followed by
    the sums of all counters. Returns None if a sum has wrapped, because its value is then meaningless.
    """
    head = header.split(data)
    places: list[Place] = list(outline.times(data))
    rows = list(COUNTER.finditer(data, head.end))
    rank = {value: i for i, value in enumerate(wanted)}
    order = [0] * bool(head.start_time)
    if len(rank) < len(wanted):
        return None

    def add(span: tuple[int, int], value: int) -> None:
        places.append((*span, Opcode.WANTED if value in rank else Opcode.COUNTED))
        if value in rank:
            order.append(bool(head.start_time) + rank[value])

    for i, row in enumerate(rows):
        if header.is_beyond(row[2]):
            return None
        add(row.span(2), i)
        if row[6] is None:
            continue
        if is_no_sum(row[6]):
            return None
        places += [(*row.span(4), Opcode.SIGNED), (*row.span(5), Opcode.SIGNED)]
        add(row.span(6), len(rows) + i)
        squares = _OF_SQUARES.match(data, row.end(6))
        if squares is not None:
            places.append((*squares.span(1), Opcode.SIGNED))
    return outline.of(data, places, order)
