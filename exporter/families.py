r"""Metric families: what they are called, what they mean, and how their lines begin.

Bulk samples never become objects: a family gives templates, the digits the kernel printed are put into them, and the
finished lines travel as chunks of bytes.

>>> reads = Counter("lustre_llite_read_bytes_total", "Bytes read.", ("fs",), "llite.*.stats", unit="bytes")
>>> print(reads.head(openmetrics=True).decode(), end="")
# HELP lustre_llite_read_bytes Bytes read.
# TYPE lustre_llite_read_bytes counter
>>> reads.template(b'fs="50%"') % b"17"
b'lustre_llite_read_bytes_total{fs="50%"} 17\n'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from exporter.bounds import INFINITY, continued, cumulative
from exporter.text_format import bound, double_percent


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One metric family and what an administrator should know of it."""

    name: str
    """As the samples are called: a counter's ends in ``_total``, a histogram's lacks ``_bucket``."""
    help: str
    labels: tuple[str, ...]
    source: str
    """The kernel's parameter, as ``lctl get_param`` names it."""
    unit: str = ""
    versions: str = "2.10+"
    """Lustre releases that have it."""

    kind: ClassVar[str]

    def head(self, *, openmetrics: bool) -> bytes:
        """The HELP and TYPE lines. OpenMetrics names a counter without ``_total``; that is the only difference."""
        name = self.name.removesuffix("_total") if openmetrics else self.name
        text = self.help.replace("\\", r"\\").replace("\n", r"\n")
        return f"# HELP {name} {text}\n# TYPE {name} {self.kind}\n".encode()

    def template(self, labels: bytes, extra: bytes = b"") -> bytes:
        """A line with ``%b`` where the digits go. ``extra`` is further label text, comma first."""
        return b"%b{%b%b} %%b\n" % (self.name.encode(), double_percent(labels), double_percent(extra))

    def line(self, labels: bytes, value: int | float | bytes) -> bytes:
        """One finished sample."""
        digits = value if isinstance(value, bytes) else str(value).encode()
        if not labels:
            return b"%b %b\n" % (self.name.encode(), digits)
        return b"%b{%b} %b\n" % (self.name.encode(), labels, digits)


class Counter(Family):
    """Only ever grows, until what it counts starts anew."""

    __slots__ = ()
    kind = "counter"


class Gauge(Family):
    """A value of this moment."""

    __slots__ = ()
    kind = "gauge"


@dataclass(frozen=True, slots=True, eq=False)
class Histogram(Family):
    """Cumulative buckets. Lustre's tables have no sum; where one is known otherwise, sum and count are shown too.

    The kernel prints a table up to the last bucket that is not empty. Sums over series by ``le`` are right only where
    all series have the same buckets, so the tables are continued up to the largest that is usual.
    """

    usual: tuple[float, ...] = ()
    """Bounds every series has, whether or not the kernel printed a table that far."""

    kind: ClassVar[str] = "histogram"

    def whole(self, bounds: Sequence[float]) -> tuple[float, ...]:
        """These bounds, and the usual ones above them."""
        return continued(self.usual, tuple(bounds))

    def buckets_template(self, labels: bytes, bounds: Sequence[float]) -> bytes:
        """Bucket lines with ``%d`` for the cumulative counts; the last is +Inf, whether ``bounds`` has it or not."""
        begin = b'%b_bucket{%b,le="' % (self.name.encode(), double_percent(labels))
        finite = [bound(upper) for upper in bounds if upper != INFINITY]
        return b"".join([b'%b%b"} %%d\n' % (begin, upper) for upper in (*finite, b"+Inf")])

    def buckets(self, labels: bytes, bounds: Sequence[float], counts: Iterable[int], total: bytes = b"") -> bytes:
        """Finished lines from counts that are not cumulative; with ``total``, digits, also ``_sum`` and ``_count``."""
        bounds = self.whole(bounds)
        counted = cumulative(bounds, counts)
        lines = self.buckets_template(labels, bounds) % counted
        if not total:
            return lines
        name = self.name.encode()
        return b"%b%b_sum{%b} %b\n%b_count{%b} %d\n" % (lines, name, labels, total, name, labels, counted[-1])
