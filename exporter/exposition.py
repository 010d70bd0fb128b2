"""From the chunks of a pass to one exposition: text or OpenMetrics, as it is or compressed.

Sample lines are the same in both formats; only the lines above a family and the end of the text differ. The exporter's
own metrics are written by prometheus_client, the rest is passed on in pieces, so that a large exposition is never in
memory a second time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, generate_latest

from exporter.scrape import Result

try:
    from isal import isal_zlib  # four times faster, and the result is smaller
except ImportError:
    isal_zlib = None  # type: ignore[assignment]

PIECE_BYTES = 1 << 18
END = b"# EOF\n"
GZIP_LEVEL = 1
"""Five to ten times cheaper than the usual level, and nearly as small: sample lines repeat themselves."""
_GZIP_FORMAT = 31


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request asks for."""

    openmetrics: bool
    gzip: bool
    content_type: str


def negotiate(accept: str, accept_encoding: str) -> Wanted:
    """The format by the request's headers; what cannot be understood gets the text format."""
    try:
        _, content_type = choose_encoder(accept)
    except (ValueError, TypeError):  # a version that is no version
        _, content_type = choose_encoder("")
    openmetrics = content_type.startswith("application/openmetrics-text")
    return Wanted(openmetrics, _gzip_accepted(accept_encoding), content_type)


def _gzip_accepted(accept_encoding: str) -> bool:
    """Whether gzip is named, and not with a weight of zero.

    >>> [_gzip_accepted(header) for header in ("deflate, GZIP;q=0.5", "gzip; q=0.0", "identity", "")]
    [True, False, False, False]
    """
    for part in accept_encoding.split(","):
        name, _, weight = part.partition(";")
        if name.strip().lower() == "gzip":
            return weight.strip().removeprefix("q=").strip("0.") != "" or not weight
    return False


def text(result: Result, registry: CollectorRegistry, *, openmetrics: bool) -> Iterator[bytes]:
    """The exposition in pieces of moderate size."""
    return _gather(_chunks(result, registry, openmetrics=openmetrics))


def _chunks(result: Result, registry: CollectorRegistry, *, openmetrics: bool) -> Iterator[bytes]:
    for family, chunks in result.families:
        yield family.head(openmetrics=openmetrics)
        yield from chunks
    if openmetrics:
        encoder, _ = choose_encoder("application/openmetrics-text; version=1.0.0")
        yield encoder(registry).removesuffix(END)
        yield END
    else:
        yield generate_latest(registry)


def _gather(chunks: Iterable[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= PIECE_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same as a gzip stream."""
    library = zlib if isal_zlib is None else isal_zlib
    compressor = library.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)
    for piece in pieces:
        if squeezed := compressor.compress(piece):
            yield squeezed
    yield compressor.flush()
