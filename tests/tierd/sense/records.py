"""Records of a source, one by one."""

from __future__ import annotations

from collections.abc import Iterator

from lustre.changelog.record import Record
from tierd.sense.changelogs.tallies import Tally
from tierd.sense.freshness import RecordSource


def records_of(source: RecordSource) -> Iterator[Record]:
    return (record for batch in source.batches() if not isinstance(batch, Tally) for record in batch)
