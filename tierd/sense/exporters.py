"""Asks all exporters in each cycle, in a few threads, and joins their last answers to one reading.

The targets of an exporter that is late or does not answer have no new counters in this reading: nothing is found there,
and the others are used. A late answer is used in the next cycle, with the time at which its counters were read: each
target reports that time (``lustre_jobs_read_timestamp_seconds``). Exporters that failed or were late last time have
separate threads and are not waited for, so that a rack without power does not delay the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from tierd.background import DaemonExecutor
from tierd.clock import Clock
from tierd.config.sense import ServerAccess
from tierd.sense.counters import CounterTable, joined_tables
from tierd.sense.exposition import MAX_ENTRIES, READ_COLLECTORS, SelectiveClient, reading_of
from tierd.sense.http_client import HttpClient, SourceError, redacted, summary_of_errors
from tierd.sense.readings import LONGEST_SECONDS, Reading, Stamp, without_targets
from tierd.text import utc_text

log = logging.getLogger("tierd.sense")
Found = TypeVar("Found")
MAX_THREADS = 8
"""Requests at the same time. It bounds the memory for answers, and the threads: systemd limits the daemon's tasks."""
MAX_RETRY_THREADS = 4
"""Additional threads for exporters that failed last time."""


class ParallelFetch(Generic[Found]):
    """Fetches many URLs at once with one deadline. A URL gets no new request before its last one has returned.

    A result that is late counts in the next call. Requests that no thread was free for stay in the queue, so that each
    URL has its turn.
    """

    def __init__(self, ask: Callable[[str], Found], deadline_seconds: float) -> None:
        """Only URLs without problems are awaited for ``deadline_seconds``."""
        self._ask = ask
        self._deadline_seconds = deadline_seconds
        self._executor = DaemonExecutor("tierd-scrape", MAX_THREADS)
        self._retry_executor = DaemonExecutor("tierd-scrape", MAX_RETRY_THREADS)
        self._pending: dict[str, Future[Found]] = {}
        """Requests that have not returned."""
        self._failed: dict[str, SourceError] = {}
        """URLs whose last request failed or was late, and why. A wait that continues is not a new reason."""

    def __call__(self, urls: Sequence[str]) -> tuple[dict[str, Found], dict[str, SourceError]]:
        """Results and errors by URL. Each URL has one or the other."""
        late = {url: answer for url, answer in self._pending.items() if answer.done()}
        self._pending = {url: answer for url, answer in self._pending.items() if url not in late}
        # slow ones have few threads of their own, and leave the others theirs
        answers = {url: (self._retry_executor if url in self._failed else self._executor).submit(self._ask, url)
                   for url in dict.fromkeys(urls) if url not in self._pending}
        prompt = [answer for url, answer in answers.items() if url not in self._failed]
        wait(prompt or answers.values(), timeout=self._deadline_seconds)  # if all failed before, they are awaited too
        done = {url: answer for url, answer in answers.items() if answer.done()}
        self._pending |= {url: answer for url, answer in answers.items() if url not in done}
        found: dict[str, Found] = {}
        errors = {url: self._failed.get(url) or SourceError(
            f"{redacted(url)}: no answer within {self._deadline_seconds:g} s") for url in self._pending if url in urls}
        for url, answer in done.items():
            self._settle(url, answer, found, errors)
        # only where the new request has no answer yet
        for url in late.keys() & errors.keys():
            self._settle(url, late[url], found, errors)
        self._failed = errors
        return found, {url: error for url, error in errors.items() if url not in found}

    def _settle(self, url: str, answer: Future[Found], found: dict[str, Found], errors: dict[str, SourceError]) -> None:
        if (error := answer.exception()) is None:
            found[url] = answer.result()
        elif isinstance(error, SourceError):
            errors[url] = error
        else:  # a defect in parsing one answer must not lose the others
            errors[url] = SourceError(f"{redacted(url)}: {type(error).__name__}: {error}")


PROMPT_SECONDS = 0.25
"""Duration of a request up to which its middle is the time of counters that have none: 5% of a cycle of 5 s."""
CLOCK_SLACK_SECONDS = 1.0
"""Difference between the times of two clocks, beyond the duration of requests, that shows that one was set."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an exporter answered, and when, by this node's clock."""

    reading: Reading
    """Of its own targets. Its stamps are by its own clock; without any, the request was short."""
    asked: float
    answered: float
    clock: int = 0
    """How often the exporter's clock was set since its first answer."""

    def after(self, before: Answer | None) -> Answer:
        """The answer after an earlier one, or that one if it is not new: a server may answer twice from one reading."""
        if before is None:
            return self
        own = [stamp.seconds - known.seconds for target, stamp in self.reading.stamps.items()
               if (known := before.reading.stamps.get(target)) is not None]
        if own and not any(own):
            return before
        here = self.answered - before.answered
        slack = CLOCK_SLACK_SECONDS + max(before.answered - before.asked, self.answered - self.asked)
        return replace(self, clock=before.clock + any(passed and abs(passed - here) > slack for passed in own))

    def stamps(self, url: str) -> dict[str, Stamp]:
        """When the counters of each target were read. Times of different servers are never compared."""
        if self.reading.stamps:
            return {target: Stamp(f"{url} {self.clock}", stamp.seconds)
                    for target, stamp in self.reading.stamps.items()}
        middle = (self.asked + self.answered) / 2
        return {target: Stamp("this node", middle) for target in self.reading.targets}


Ask = Callable[[Sequence[str]], tuple[Mapping[str, Answer], Mapping[str, SourceError]]]
"""Returns the new answers of these exporters, and the errors of those without one."""


class ExporterReadings:
    """Joins the answers of a list of exporters that may change.

    The last answer of an exporter counts until it is ``LONGEST_SECONDS`` old: its targets have no new counters until
    then, and are missing from then on. Of a target that two exporters show, the later answer counts: after a failover
    the partner of a server shows its targets.
    """

    def __init__(self, urls: Callable[[], Sequence[str]], ask: Ask, clock: Clock) -> None:
        self._urls = urls
        self._ask = ask
        self._clock = clock
        self._known: dict[str, Answer] = {}
        """The last answer of each exporter."""
        self._failing: dict[str, float] = {}
        """Since when each exporter has not answered; epoch seconds."""
        self._last: Reading | None = None
        self._logged: frozenset[str] = frozenset()
        self.problem = ""
        """Exporters that do not answer now, with the reason and the time since when."""

    def __call__(self) -> Reading:
        """Counters now, or the last reading while no exporter has new ones. Raises SourceError naming the exporters,
        and since when, if none has answered for ``LONGEST_SECONDS``, or if two show the same target at the same time.
        """
        urls, now = self._urls(), self._clock.now()
        if not urls:
            raise SourceError("no exporter is configured, and none was discovered")
        found, problems = self._ask(urls)
        self._note(problems, now)
        before = {url: answer for url, answer in self._known.items()
                  if url in urls and now - answer.answered <= LONGEST_SECONDS}
        self._known = before | {url: answer.after(before.get(url)) for url, answer in found.items()}
        if not self._known:
            raise SourceError(self.problem)
        # the objects of before: nothing is new
        if self._last is None or any(self._known[url] is not before.get(url) for url in found):
            self._last = joined_reading(self._known, now)
        return self._last

    def _note(self, problems: Mapping[str, SourceError], now: float) -> None:
        """Remember since when exporters have not answered. Log those that have not for long, or work again."""
        self._failing = {url: self._failing.get(url, now) for url in problems}
        self.problem = summary_of_errors([f"{error} (since {utc_text(self._failing[url])})"
                                          for url, error in sorted(problems.items())])
        missing = frozenset(url for url, since in self._failing.items() if now - since > LONGEST_SECONDS)
        if missing != self._logged:
            self._logged = missing
            if missing:
                log.warning("exporters do not answer: %s; tierd finds nothing on their targets", self.problem)
            else:
                log.info("all exporters answer again")


def joined_reading(answers: Mapping[str, Answer], time: float) -> Reading:
    """One reading of the answers of several exporters, of which the later one counts. Raises SourceError for too many
    entries, and if two show the same target at this time.
    """
    shown: dict[str, str] = {}
    ordered = dict(sorted(answers.items(), key=lambda item: item[1].asked))  # the later one overwrites
    for url, answer in ordered.items():
        for target in answer.reading.targets:
            if target in shown and answers[shown[target]].asked >= time:  # both were asked in this call
                raise SourceError(f"{target} is shown by both {redacted(shown[target])} and {redacted(url)}: only "
                                  "one server can serve it, so one of them is out of date, or one server is "
                                  "configured twice")
            shown[target] = url
    every = [replace(without_targets(each.reading, {name for name in each.reading.targets if shown[name] != url}),
                     stamps=each.stamps(url)) for url, each in ordered.items()]
    tables = [CounterTable.of(one.jobs) for one in every]
    if sum(map(len, tables)) > MAX_ENTRIES:
        raise SourceError(f"more than {MAX_ENTRIES} pairs of job and target")
    return Reading(time, joined_tables(tables), frozenset(shown),
                   {target: why for one in every for target, why in one.conditions.items()},
                   changelogs={mdt: state for one in every for mdt, state in one.changelogs.items()},
                   is_flash={target: flash for one in every for target, flash in one.is_flash.items()},
                   data_limits={mdt: most for one in every for mdt, most in one.data_limits.items()},
                   services={origin: service for one in every for origin, service in one.services.items()},
                   stamps={target: stamp for one in every for target, stamp in one.stamps.items()},
                   complete=frozenset().union(*[one.complete for one in every]))


class HttpAnswers(ParallelFetch[Answer]):
    """Asks exporters over HTTP."""

    def __init__(self, client: HttpClient, clock: Clock, wait_seconds: float, skew_seconds: float) -> None:
        """``wait_seconds`` is the time to wait for answers in each call; the client has the timeout of a request."""
        self._client = SelectiveClient(client, READ_COLLECTORS)
        self._clock = clock
        self._skew_seconds = skew_seconds
        super().__init__(self._one, wait_seconds)

    def _one(self, url: str) -> Answer:
        asked = self._clock.now()
        answer = self._client.get(url)
        answered = self._clock.now()
        if answer.date is not None and abs(answer.date - answered) > self._skew_seconds:
            ahead_seconds = answer.date - answered
            raise SourceError(f"{redacted(url)}: its clock differs from this node's by {ahead_seconds:+.0f} s: "
                              "repair the time service; times of files and records cannot be compared")
        reading = reading_of(answer.body, redacted(url), answered)
        if not reading.stamps and reading.targets and answered - asked > PROMPT_SECONDS:
            raise SourceError(f"{redacted(url)}: it does not show when it read its counters, and took "
                              f"{answered - asked:.1f} s: install a newer lustre-exporter there")
        return Answer(reading, asked, answered)


def scrape_fixed_list(urls: Sequence[str], clock: Clock, timeout_seconds: float) -> ExporterReadings:
    """Readings over HTTP from a fixed list of exporters."""
    client = HttpClient(ServerAccess(), timeout_seconds)
    return ExporterReadings(lambda: urls, HttpAnswers(client, clock, timeout_seconds, float("inf")), clock)
