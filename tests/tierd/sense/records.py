"""Records of a source, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from lustre.changelog.record import Record
from tierd.sense.freshness import RecordSource


def records_of(source: RecordSource) -> Iterator[Record]:
    return chain.from_iterable(source.batches())
