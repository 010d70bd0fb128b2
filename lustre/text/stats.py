r"""Counters as nearly all of Lustre prints them: ``stats``, ``md_stats``, service statistics.

Used by llite, osc, mdc, obdfilter, mdt, osd and the services alike. One line a counter that was ever used::

    snapshot_time                       1795218508.752159935 secs.nsecs
    start_time                          1795217463.183879238 secs.nsecs
    elapsed_time                        1045.568280697 secs.nsecs
    req_waittime                        3894 samples [usecs] 139 511438 35473947 2215597260185
    write_bytes                         206 samples [bytes] 4096 4194304 163282944 620728470732800
    ioctl                               2975 samples [reqs]

The numbers are samples, then minimum, maximum, sum and sum of squares. Counters that only count have the first alone.
The kernel adds in signed 64 bits: a sum or minimum may have wrapped and be negative; the sum of squares wraps early on
and is left out here.

The column of names is 25 wide up to 2.17.0 and 35 after it; longer names push the rest aside. Some names held blanks
before 2.15 ("thandle open", "readpage not consecutive"): they come back with underscores, as later releases print them.

>>> stats = parse(b"snapshot_time   9.5 secs.nsecs\nread_bytes   2 samples [bytes] 4096 8192 12288 83886080\n"
...               b"ioctl   3 samples [regs]\n")
>>> stats.names, stats.samples, stats.units, stats.sums
((b'read_bytes', b'ioctl'), (b'2', b'3'), (b'bytes', b'reqs'), (b'12288', b''))
>>> stats.counter(b"read_bytes")
Counter(samples=2, unit=b'bytes', minimum=4096, maximum=8192, sum=12288)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.text import header

COUNTER = re.compile(
    rb"^(\S++(?: (?!\d{1,20}+ samples)\S++)*) ++(\d{1,20}+) samples \[([^\]\s]*+)\]"
    rb"(?: (-?+\d{1,20}+) (-?+\d{1,20}+) (-?+\d{1,20}+)(?: -?+\d{1,20}+)?)?[ \t]*+\n",
    re.MULTILINE,
)
_UNITS = {b"usec": b"usecs", b"sec": b"secs", b"regs": b"reqs", b"req": b"reqs", b"byte": b"bytes", b"page": b"pages"}


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter in numbers; minimum, maximum and sum are 0 where the kernel printed none."""

    samples: int
    unit: bytes
    minimum: int
    maximum: int
    sum: int


@dataclass(frozen=True, slots=True)
class Stats:
    """The file in columns, digits as the kernel printed them, empty where it printed none."""

    start_time: bytes
    names: tuple[bytes, ...]
    samples: tuple[bytes, ...]
    units: tuple[bytes, ...]
    minima: tuple[bytes, ...]
    maxima: tuple[bytes, ...]
    sums: tuple[bytes, ...]
    skipped: int

    def counter(self, name: bytes) -> Counter | None:
        """The counter of that name, or None: one that was never used is not in the file."""
        if name not in self.names:
            return None
        i = self.names.index(name)
        return Counter(
            int(self.samples[i]),
            self.units[i],
            int(self.minima[i] or 0),
            int(self.maxima[i] or 0),
            int(self.sums[i] or 0),
        )


def parse(data: bytes) -> Stats:
    """Read a whole ``stats`` file."""
    head = header.split(data)
    rows = COUNTER.findall(data, head.end)
    skipped = header.skipped_lines(data, head.lines + len(rows))
    if not rows:
        return Stats(head.start_time, (), (), (), (), (), (), skipped)
    names, samples, units, minima, maxima, sums = zip(*rows, strict=True)
    if b" " in b"".join(names):
        names = tuple([name.replace(b" ", b"_") for name in names])
    units = tuple([_UNITS.get(unit, unit) for unit in units])
    return Stats(head.start_time, names, samples, units, minima, maxima, sums, skipped)

