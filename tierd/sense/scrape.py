"""All exporters, every cycle, as one reading: a whole view or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tierd.clock import Clock
from tierd.sense import exporters
from tierd.sense.access import SourceError
from tierd.sense.collected import Collected
from tierd.sense.http import Client, shown
from tierd.sense.parallel import Parallel
from tierd.sense.readings import Reading

TOLD = 3
"""Of many complaints, so many are told in full."""


class Exporters:
    """Scrapes a list that may change.

    An exporter that does not answer makes the view half, unless all targets it ever showed are shown by others now, as
    when a server is down and its partner has taken its targets over. One that never answered may have shown anything.
    """

    def __init__(self, urls: Callable[[], Sequence[str]], client: Client, clock: Clock, deadline_seconds: float,
                 skew_seconds: float, say: Callable[[str], None] = lambda _: None) -> None:
        self._urls = urls
        self._client = client
        self._clock = clock
        self._skew_seconds = skew_seconds
        self._say = say
        self._gather: Parallel[Collected] = Parallel(self._one, deadline_seconds)
        self._shown: dict[str, frozenset[str]] = {}
        """URL to the targets it showed when it answered last."""
        self.missing = ""
        """Exporters that are silent while others show their targets, in words."""

    def __call__(self) -> Reading:
        """Counters now. Raises SourceError naming the exporters that did not answer as they should."""
        urls = self._urls()
        if not urls:
            raise SourceError("no exporter is named, and none was discovered")
        found, troubles = self._gather(urls)
        reading = exporters.together([found[url] for url in found], self._clock.now())
        lost = {url: error for url, error in troubles.items() if not self._replaced(url, reading.targets)}
        if lost:
            raise SourceError(in_words(lost))
        if in_words(troubles) != self.missing:
            self.missing = in_words(troubles)
            self._say(f"exporters that are silent, whose targets others show: {self.missing or 'none any more'}")
        self._shown = {url: self._shown[url] for url in urls if url in self._shown}
        self._shown.update({url: frozenset(view.targets) for url, view in found.items()})
        return reading

    def _replaced(self, url: str, targets: frozenset[str]) -> bool:
        return url in self._shown and self._shown[url] <= targets

    def _one(self, url: str) -> Collected:
        answer = self._client.get(url, exporters.TEXT, exporters.ACCEPT)
        if answer.date is not None and abs(answer.date - self._clock.now()) > self._skew_seconds:
            raise SourceError(f"{shown(url)}: its clock and ours are {answer.date - self._clock.now():+.0f} s apart: "
                              "mend the time service; times of files and records would be misread")
        return exporters.view(answer.body, shown(url))


def in_words(troubles: Mapping[str, SourceError]) -> str:
    """The first few complaints, and how many more there are; "" for none."""
    told = [str(error) for _, error in sorted(troubles.items())]
    more = f" (and {len(told) - TOLD} more)" if len(told) > TOLD else ""
    return "; ".join(told[:TOLD]) + more
