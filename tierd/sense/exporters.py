"""Scrapes all exporters in each cycle in a few threads with one deadline, and joins the answers to one reading.

A missing answer is an error, unless other exporters show the targets of that exporter. A request that still runs after
the deadline ends with its own timeout, and its exporter gets no further request until then: the number of threads is
bounded. Exporters that failed last time have separate threads, so that a rack without power does not delay the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

from lustre.background import DaemonExecutor
from tierd.clock import Clock
from tierd.config.sense import ServerAccess
from tierd.sense import exposition
from tierd.sense.exposition import ExporterView
from tierd.sense.http_client import HttpClient, SourceError, redacted
from tierd.sense.readings import Reading

Found = TypeVar("Found")
MAX_THREADS = 8
"""Requests at the same time. It bounds the memory for answers, and the threads: systemd limits the daemon's tasks."""
MAX_RETRY_THREADS = 4
"""Additional threads for exporters that failed last time."""


class ParallelFetch(Generic[Found]):
    """Fetches many URLs at once with one deadline. A URL gets no new request before its last one has returned."""

    def __init__(self, ask: Callable[[str], Found], deadline_seconds: float, max_threads: int = MAX_THREADS) -> None:
        self._ask = ask
        self._deadline_seconds = deadline_seconds
        self._executor = DaemonExecutor("tierd-scrape", max_threads)
        self._retry_executor = DaemonExecutor("tierd-scrape", MAX_RETRY_THREADS)
        self._pending: dict[str, Future[Found]] = {}
        """Requests that have not returned."""
        self._failed: set[str] = set()
        """URLs whose last request failed."""

    def __call__(
        self, urls: Sequence[str], deadline_seconds: float | None = None
    ) -> tuple[dict[str, Found], dict[str, SourceError]]:
        """Results and errors by URL. Each URL has one or the other. ``deadline_seconds`` replaces the usual one."""
        seconds = self._deadline_seconds if deadline_seconds is None else deadline_seconds
        self._pending = {url: answer for url, answer in self._pending.items() if not answer.done()}
        answers = {url: self._begin(url) for url in dict.fromkeys(urls) if url not in self._pending}
        wait(answers.values(), timeout=seconds)
        found: dict[str, Found] = {}
        errors = {url: SourceError(f"{redacted(url)}: the request before this one has not returned yet")
                  for url in self._pending if url in urls}
        not_begun = set()
        for url, answer in answers.items():
            if answer.cancel():
                not_begun.add(url)
                errors[url] = SourceError(f"{redacted(url)}: not requested within {seconds:g} s, "
                                          "because other exporters did not answer")
            elif not answer.done():
                self._pending[url] = answer
                errors[url] = SourceError(f"{redacted(url)}: no answer within {seconds:g} s")
            elif (error := answer.exception()) is None:
                found[url] = answer.result()
            elif isinstance(error, SourceError):
                errors[url] = error
            else:  # a defect in parsing one answer must not lose the others
                errors[url] = SourceError(f"{redacted(url)}: {type(error).__name__}: {error}")
        self._failed = (self._failed | errors.keys() - not_begun) & {*urls} - found.keys()
        return found, errors

    def _begin(self, url: str) -> Future[Found]:
        return (self._retry_executor if url in self._failed else self._executor).submit(self._ask, url)


MAX_NAMED_ERRORS = 3
"""Errors that one message has in full."""


class ExporterReadings:
    """Scrapes a list of exporters that may change.

    A failed exporter is an error, unless other exporters now show all targets of its last answer: its server may be
    down, and the failover partner may serve its targets. Targets of an exporter that never answered are unknown.
    """

    def __init__(self, urls: Callable[[], Sequence[str]], client: HttpClient, clock: Clock, deadline_seconds: float,
                 skew_seconds: float, log: Callable[[str], None] = lambda _: None) -> None:
        self._urls = urls
        self._client = client
        self._clock = clock
        self._skew_seconds = skew_seconds
        self._log = log
        self._gather: ParallelFetch[ExporterView] = ParallelFetch(self._one, deadline_seconds)
        self._shown: dict[str, frozenset[str]] = {}
        """Targets in the last answer of each URL."""
        self.missing = ""
        """Errors of failed exporters whose targets others show."""

    def __call__(self) -> Reading:
        """Counters now. Raises SourceError naming the exporters that failed."""
        urls = self._urls()
        if not urls:
            raise SourceError("no exporter is configured, and none was discovered")
        found, problems = self._gather(urls)
        reading = exposition.joined_reading([found[url] for url in found], self._clock.now())
        lost = {url: error for url, error in problems.items() if not self._replaced(url, reading.targets)}
        if lost:
            raise SourceError(summary_of_errors(lost))
        if summary_of_errors(problems) != self.missing:
            self.missing = summary_of_errors(problems)
            self._log(f"failed exporters whose targets other exporters show: {self.missing or 'none'}")
        self._shown = {url: self._shown[url] for url in urls if url in self._shown}
        self._shown.update({url: frozenset(view.targets) for url, view in found.items()})
        return reading

    def _replaced(self, url: str, targets: frozenset[str]) -> bool:
        return url in self._shown and self._shown[url] <= targets

    def _one(self, url: str) -> ExporterView:
        answer = self._client.get(url, exposition.TEXT_TYPES, exposition.ACCEPT_TEXT)
        if answer.date is not None and abs(answer.date - self._clock.now()) > self._skew_seconds:
            ahead_seconds = answer.date - self._clock.now()
            raise SourceError(f"{redacted(url)}: its clock differs from this node's by {ahead_seconds:+.0f} s: "
                              "repair the time service; times of files and records cannot be compared")
        return exposition.exporter_view(answer.body, redacted(url))


def summary_of_errors(problems: Mapping[str, SourceError]) -> str:
    """The first few errors and the number of the others; "" without errors."""
    texts = [str(error) for _, error in sorted(problems.items())]
    more = f" (and {len(texts) - MAX_NAMED_ERRORS} more)" if len(texts) > MAX_NAMED_ERRORS else ""
    return "; ".join(texts[:MAX_NAMED_ERRORS]) + more


def scrape_fixed_list(urls: Sequence[str], clock: Clock, timeout_seconds: float) -> ExporterReadings:
    """Readings over HTTP from a fixed list of exporters."""
    def fixed() -> Sequence[str]:
        return urls

    return ExporterReadings(fixed, HttpClient(ServerAccess(), timeout_seconds), clock, timeout_seconds, float("inf"))


def fetch_exposition(url: str, timeout_seconds: float) -> str:
    """The exposition of one exporter, as text. Raises SourceError naming the URL."""
    return (
        HttpClient(ServerAccess(), timeout_seconds)
        .get(url, (*exposition.TEXT_TYPES, "text/html"), exposition.ACCEPT_TEXT)
        .body.decode("utf-8", "replace")
    )
