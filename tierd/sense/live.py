"""What the daemon listens to: readings from local files or from exporters, and the changelogs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lustre.changelog import Record
from lustre.tree import Tree
from tierd.clock import Clock
from tierd.sense import exporters, local
from tierd.sense.follow import Follower
from tierd.sense.readings import Reading


class LiveSource:
    """A way to read counters, and a follower of changelogs."""

    def __init__(self, read: Callable[[], Reading], follower: Follower) -> None:
        self._read = read
        self.follower = follower

    def reading(self) -> Reading:
        """Counters now. Raises OSError when they cannot be had."""
        return self._read()

    def records(self) -> Iterator[Record]:
        """Records since the last call. Raises OSError at the end when some could not be had."""
        return self.follower.records()


def scraping(urls: Sequence[str], clock: Clock, timeout_seconds: float) -> Callable[[], Reading]:
    """Readings over HTTP. Half a view is none: one exporter that does not answer is an error."""
    def read() -> Reading:
        expositions = [exporters.fetch(url, timeout_seconds) for url in urls]
        return exporters.reading(expositions, clock.now())

    return read


def local_files(tree: Tree, clock: Clock) -> Callable[[], Reading]:
    """Readings from the parameter files of this node."""
    return lambda: local.reading(tree, clock.now())
