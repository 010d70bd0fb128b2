"""Metric families, their samples, and the exposition: text or OpenMetrics, plain or compressed.

Most samples never become objects: their numbers are printed into templates, and the finished lines travel as chunks of
bytes. Sample lines are the same in both formats; only the lines above a family and
the end of the text differ. prometheus_client writes the exporter's own metrics. The exposition is sent in pieces, so
that a large one is never in memory twice.

The kernel prints a histogram up to its last bucket that is not empty, with counts that are not cumulative.

>>> reads = Counter("lustre_llite_read_bytes_total", "Bytes read.", ("fs",), "llite.*.stats")
>>> print(reads.head(openmetrics=True).decode(), end="")
# HELP lustre_llite_read_bytes Bytes read.
# TYPE lustre_llite_read_bytes counter
>>> print(reads.line(b'fs="50%"', 17).decode(), end="")
lustre_llite_read_bytes_total{fs="50%"} 17
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, generate_latest

from httpserver.bodies import Body


@lru_cache(maxsize=16384)
def label_text(**labels: str | bytes) -> bytes:
    r"""Return the label text between the braces of a sample.

    >>> label_text(fs="a", jobid=b'b"c\\\n\xff').decode()
    'fs="a",jobid="b\\"c\\\\\\n�"'
    """
    return b",".join([b'%b="%b"' % (name.encode(), escape(value)) for name, value in labels.items()])


def escape(value: str | bytes) -> bytes:
    """Escape a label value for the text between the quotes. Bytes that are not UTF-8 become U+FFFD."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    text = text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return text.encode("utf-8", "replace")


def double_percent(text: bytes) -> bytes:
    """Escape text for a ``%`` template."""
    return text.replace(b"%", b"%%")


def format_bound(value: float) -> bytes:
    """Format the bound of a bucket as a float, which both formats require.

    >>> format_bound(4096), format_bound(0.000256)
    (b'4096.0', b'0.000256')
    """
    return repr(float(value)).encode()


def usec_to_seconds(usec: bytes) -> bytes:
    """Convert digits of microseconds to digits of seconds.

    >>> usec_to_seconds(b"63381633"), usec_to_seconds(b"12")
    (b'63.381633', b'0.000012')
    """
    digits = usec.zfill(7)
    return digits[:-6] + b"." + digits[-6:]


INFINITY = float("inf")


def doubling(first: int, last: int, unit: float = 1.0) -> tuple[float, ...]:
    """Return the bounds of a table of powers of two, from the first to the last.

    >>> doubling(1, 8), doubling(1, 4, 1e-3)
    ((1.0, 2.0, 4.0, 8.0), (0.001, 0.002, 0.004))
    """
    powers = range(first.bit_length() - 1, last.bit_length())
    return tuple([round((1 << power) * unit, 12) for power in powers])


def single_values(last: int) -> tuple[float, ...]:
    return tuple(map(float, range(1, last + 1)))


SINGLE_VALUES = single_values(30)
"""Bounds of a table of single values. The kernel's next bucket, 31, is its last and also counts all larger values."""


@lru_cache(maxsize=4096)
def with_usual_bounds(usual: tuple[float, ...], bounds: tuple[float, ...]) -> tuple[float, ...]:
    last = bounds[-1] if bounds else 0.0
    return (*bounds, *[upper for upper in usual if upper > last])


def cumulative(bounds: Sequence[float], counts: Iterable[int]) -> tuple[int, ...]:
    """Return cumulative counts, one for each line of a bucket template. Missing counts are 0.

    >>> cumulative((1, 2), (5, 7)), cumulative((1, INFINITY), (5, 7)), cumulative((1, 2, 4), (5, 7))
    ((5, 12, 12), (5, 12), (5, 12, 12, 12))
    """
    counted = tuple(accumulate(counts))
    lines = len(bounds) + (not bounds or bounds[-1] != INFINITY)
    return counted + (counted[-1] if counted else 0,) * (lines - len(counted))


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One metric family, with its documentation."""

    name: str
    """Name of the samples, with ``_total`` for a counter and without ``_bucket`` for a histogram."""
    help: str
    labels: tuple[str, ...]
    source: str
    """The kernel's parameter, as ``lctl get_param`` names it."""
    versions: str = "2.10+"
    """Lustre releases that have the parameter."""
    unit: str = field(init=False)
    """Base unit at the end of the name: ``bytes``, ``seconds``, ``ratio`` or nothing."""

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        last = self.name.removesuffix("_total").rpartition("_")[2]
        object.__setattr__(self, "unit", last if last in {"bytes", "seconds", "ratio"} else "")

    def head(self, *, openmetrics: bool) -> bytes:
        """Return the HELP and TYPE lines. The only difference: OpenMetrics names a counter without ``_total``."""
        name = self.name.removesuffix("_total") if openmetrics else self.name
        text = self.help.replace("\\", r"\\").replace("\n", r"\n")
        return f"# HELP {name} {text}\n# TYPE {name} {self.kind}\n".encode()

    def line(self, labels: bytes, value: int | float | bytes) -> bytes:
        digits = value if isinstance(value, bytes) else str(value).encode()
        if not labels:
            return b"%b %b\n" % (self.name.encode(), digits)
        return b"%b{%b} %b\n" % (self.name.encode(), labels, digits)

    def counted(self, labels: bytes, number: int) -> bytes:
        """Return a line with a number of the kernel, which counts seconds in microseconds."""
        digits = b"%d" % number
        return self.line(labels, usec_to_seconds(digits) if self.unit == "seconds" else digits)


class Counter(Family):
    """A value that only grows until it is reset."""

    __slots__ = ()
    kind = "counter"


class Gauge(Family):
    """A value that may go up and down."""

    __slots__ = ()
    kind = "gauge"


@dataclass(frozen=True, slots=True, eq=False)
class Histogram(Family):
    """Cumulative buckets. Lustre's tables have no sum; if it is known from elsewhere, sum and count are shown too.

    The kernel prints a table up to the last bucket that is not empty. Sums over series by ``le`` are correct only if
    all series have the same buckets, so every table is extended by the usual buckets.
    """

    usual: tuple[float, ...] = ()
    """Bounds that every series has, even if the kernel's table is shorter."""

    kind: ClassVar[str] = "histogram"

    def whole(self, bounds: Sequence[float]) -> tuple[float, ...]:
        """The given bounds, and the usual ones above them."""
        return with_usual_bounds(self.usual, tuple(bounds))

    def buckets_template(self, labels: bytes, bounds: Sequence[float]) -> bytes:
        """Return bucket lines with ``%d`` for the cumulative counts. The last is always +Inf."""
        begin = b'%b_bucket{%b,le="' % (self.name.encode(), double_percent(labels))
        finite = [format_bound(upper) for upper in bounds if upper != INFINITY]
        return b"".join([b'%b%b"} %%d\n' % (begin, upper) for upper in (*finite, b"+Inf")])

    def buckets(self, labels: bytes, bounds: Sequence[float], counts: Iterable[int], total: bytes = b"") -> bytes:
        """Return finished lines from non-cumulative counts. ``total`` (digits) adds ``_sum`` and ``_count``."""
        bounds = self.whole(bounds)
        counted = cumulative(bounds, counts)
        lines = self.buckets_template(labels, bounds) % counted
        if not total:
            return lines
        name = self.name.encode()
        return b"%b%b_sum{%b} %b\n%b_count{%b} %d\n" % (lines, name, labels, total, name, labels, counted[-1])


@dataclass(slots=True)
class MetricsPage:
    """The metrics of one pass of one collector: chunks of finished lines for each family."""

    chunks: dict[Family, list[bytes]] = field(default_factory=dict)
    made: int = 0
    """Number of chunks of texts that may be unchanged."""
    reused: int = 0
    """Number of these chunks that were unchanged since the last pass and were used again."""

    def count_chunks(self, made: int, reused: int) -> None:
        self.made += made
        self.reused += reused

    def add(self, family: Family, chunk: bytes) -> None:
        if chunk:
            self.chunks.setdefault(family, []).append(chunk)

    def extend(self, lines: Iterable[tuple[Family, bytes]]) -> None:
        """Add finished lines of several families. No chunk may be empty."""
        chunks = self.chunks
        for family, chunk in lines:
            if family in chunks:
                chunks[family].append(chunk)
            else:
                chunks[family] = [chunk]

    def sample(self, family: Family, labels: bytes, value: int | float | bytes | None) -> None:
        """Add one sample. The value None, for an unknown value, adds nothing."""
        if value is not None:
            self.add(family, family.line(labels, value))

    def lines(self) -> tuple[tuple[Family, bytes], ...]:
        return tuple([(family, b"".join(chunks)) for family, chunks in self.chunks.items()])


try:
    from isal import isal_zlib  # four times faster, and the result is smaller
except ImportError:
    isal_zlib = None  # type: ignore[assignment]
PIECE_BYTES = 1 << 18
CHUNKS_AT_ONCE = 64
"""Number of chunks whose size is computed together."""
GZIP_LEVEL = 1
"""Compression level: five to ten times cheaper than the default and nearly as small, because lines are repetitive."""
_GZIP_FORMAT = 31


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """The response format that a request asks for."""

    openmetrics: bool
    gzip: bool
    content_type: str


def negotiate(accept: str, accept_encoding: str) -> ResponseFormat:
    """Choose the format by the headers of a request. Invalid headers select the text format."""
    try:
        _, content_type = choose_encoder(accept)
    except (ValueError, TypeError):  # an invalid version
        _, content_type = choose_encoder("")
    openmetrics = content_type.startswith("application/openmetrics-text")
    if openmetrics:  # the bulk of the text is OpenMetrics 1 (decision 17)
        content_type = content_type.replace("version=2.0.0", "version=1.0.0")
    return ResponseFormat(openmetrics, _gzip_accepted(accept_encoding), content_type)


def _gzip_accepted(accept_encoding: str) -> bool:
    """Whether a client accepts gzip: the header names it without a weight of zero.

    >>> [_gzip_accepted(header) for header in ("deflate, GZIP;q=0.5", "gzip; q=0.0", "identity", "")]
    [True, False, False, False]
    """
    for part in accept_encoding.split(","):
        name, _, weight = part.partition(";")
        if name.strip().lower() == "gzip":
            return weight.strip().removeprefix("q=").strip("0.") != "" or not weight
    return False


def render(result: ScrapeResult, registry: CollectorRegistry, *, openmetrics: bool) -> Iterator[bytes]:
    return _pieces(_lists(result.families, own_metrics(registry, openmetrics=openmetrics), openmetrics=openmetrics))


Families = tuple[tuple[Family, Sequence[bytes]], ...]


def _lists(families: Families, own: bytes, *, openmetrics: bool) -> Iterator[Sequence[bytes]]:
    for family, chunks in families:
        yield (family.head(openmetrics=openmetrics),)
        yield chunks
    yield (own,)


def own_metrics(registry: CollectorRegistry, *, openmetrics: bool) -> bytes:
    """Return the end of the exposition: the metrics of prometheus_client's objects."""
    if openmetrics:
        encoder, _ = choose_encoder("application/openmetrics-text; version=1.0.0")
        return encoder(registry)
    return generate_latest(registry)


def _pieces(lists: Iterable[Sequence[bytes]]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for chunks in lists:
        for begin in range(0, len(chunks), CHUNKS_AT_ONCE):
            part = chunks[begin : begin + CHUNKS_AT_ONCE]
            part_size = sum(map(len, part))
            if part_size > PIECE_BYTES:  # long chunks
                yield b"".join(held)
                yield from part
                held, size = [], 0
                continue
            held += part
            size += part_size
            if size >= PIECE_BYTES:
                yield b"".join(held)
                held, size = [], 0
    if held:
        yield b"".join(held)


def gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    library = zlib if isal_zlib is None else isal_zlib
    compressor = library.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)
    for piece in pieces:
        if squeezed := compressor.compress(piece):
            yield squeezed
    yield compressor.flush()


@dataclass(frozen=True, slots=True, eq=False)
class ScrapeResult:
    """The metrics of a pass: families in a fixed order, each with its chunks."""

    families: tuple[tuple[Family, Sequence[bytes]], ...]
    _bodies: dict[tuple[bool, bool], Body] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def body(self, registry: CollectorRegistry, *, openmetrics: bool, gzip: bool) -> Body:
        """Return the exposition in this format. All callers share it, so that it is written and compressed once.

        A compressed body no longer needs the lines. A plain body is joined from the lines while it is sent.
        """
        with self._lock:
            body = self._bodies.get((openmetrics, gzip))
            if body is None:
                made = self._compressed if gzip else self._plain
                body = self._bodies[openmetrics, gzip] = made(registry, openmetrics=openmetrics)
            return body

    def _compressed(self, registry: CollectorRegistry, *, openmetrics: bool) -> Body:
        pieces = tuple(gzipped(render(self, registry, openmetrics=openmetrics)))
        return Body(lambda: pieces, sum(map(len, pieces)))

    def _plain(self, registry: CollectorRegistry, *, openmetrics: bool) -> Body:
        own = own_metrics(registry, openmetrics=openmetrics)
        families = self.families
        size = sum([sum(map(len, chunks)) for chunks in _lists(families, own, openmetrics=openmetrics)])
        return Body(lambda: _pieces(_lists(families, own, openmetrics=openmetrics)), size)
