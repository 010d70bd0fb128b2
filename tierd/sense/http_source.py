"""Exporters over HTTP and changelogs through the file system port: what the daemon listens to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lustre import changelog
from lustre.changelog import Record
from lustre.filesystem import Filesystem
from tierd.clock import Clock
from tierd.sense import exporters
from tierd.sense.readings import Reading


class HttpSource:
    """Scrapes every exporter once a cycle, and follows the changelog of every MDT from where it began to listen."""

    def __init__(self, urls: Sequence[str], filesystem: Filesystem, mdts: Sequence[str], clock: Clock,
                 timeout_seconds: float = 5.0) -> None:
        self._urls = urls
        self._filesystem = filesystem
        self._heard = dict.fromkeys(mdts, 0)
        self._clock = clock
        self._timeout_seconds = timeout_seconds

    def reading(self) -> Reading:
        """Counters of all exporters. Raises SourceError when one does not answer: half a view is none."""
        expositions = [exporters.fetch(url, self._timeout_seconds) for url in self._urls]
        return exporters.reading(expositions, self._clock.now())

    def records(self) -> Iterator[Record]:
        """Records since the last call. Raises OSError when a changelog cannot be read, or is none."""
        for mdt, index in self._heard.items():
            data = self._filesystem.changelog(mdt, index)
            try:
                records, _ = changelog.decode(data)
            except ValueError as error:
                raise exporters.SourceError(f"changelog of {mdt}: {error}") from error
            if records:
                self._heard[mdt] = records[-1].index
            yield from records
