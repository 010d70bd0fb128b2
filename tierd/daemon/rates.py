"""Throughput of targets and jobs over time: what the journal records each minute, and the answers made of it.

Where Prometheus is the source of counters, it is asked about one target or job first. It is asked in the thread of the
request, with a short limit, and its answer is used again for a while: pages ask with each new status.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tierd.act.journal.rates import JOBS, KEPT_SECONDS, MAX_JOBS, TARGETS, RateReader, RateRecords, step_of
from tierd.clock import Clock
from tierd.daemon import answers
from tierd.daemon.requests import Handler, number_of, text_of
from tierd.model import Window
from tierd.rates import Point, mean_rates
from tierd.sense.exposition import LONGEST_LABEL_BYTES
from tierd.sense.http_client import SourceError

MINUTE_SECONDS = min(KEPT_SECONDS)
MAX_SECONDS = max(KEPT_SECONDS.values())
"""Longest range of a question."""
MAX_TIME = 1e11


class RateSampler:
    """Enters the mean rates of each minute into the journal."""

    def __init__(self, records: RateRecords) -> None:
        self._records = records
        self._minute: float | None = None
        """The one that has not ended."""
        self._seen_until = 0.0
        """End of the last window that is part of a record."""

    def record(self, windows: Sequence[Window], always: frozenset[str], now: float) -> None:
        """Enter the minute that has just ended; nothing until one has. ``always`` are jobs of every record."""
        before, self._minute = self._minute, now // MINUTE_SECONDS
        if before in {None, self._minute}:
            return
        new = [window for window in windows if max(self._seen_until, now - 2 * MINUTE_SECONDS) < window.end <= now]
        if new:
            self._seen_until = new[-1].end
            self._records.add(int(self._minute * MINUTE_SECONDS), {
                TARGETS: mean_rates(new, 0), JOBS: mean_rates(new, 1).busiest(MAX_JOBS, always)})


FRESH_SECONDS = 20.0
"""An answer is used again for so long."""
MAX_ANSWERS, MAX_QUESTIONS = 64, 2
"""Answers that are kept, and questions to Prometheus at a time: each holds a connection of the port."""


@dataclass(frozen=True, slots=True)
class _Kept:
    made_at: float
    answer: answers.RatesAnswer


AskRates = Callable[[str, str, float, float, int], list[Point]]
"""Points of a kind and a name, since a time until another, with a step in seconds. Raises SourceError."""


class RateRequests:
    """Answers questions about past rates. Safe in any thread; holds no lock while it waits."""

    def __init__(self, reader: RateReader, prometheus: AskRates | None, clock: Clock) -> None:
        self._reader, self.prometheus, self._clock = reader, prometheus, clock
        self._lock = threading.Lock()
        self._asking = threading.BoundedSemaphore(MAX_QUESTIONS)
        self._kept: OrderedDict[tuple[str, str, float, float], _Kept] = OrderedDict()
        self.requests: Mapping[str, Handler] = {"rates": self._rates, "moment": self._moment}

    def _moment(self, request: answers.Json) -> answers.MomentAnswer:
        """All targets and the busiest jobs at a ``time``; now if it is left out."""
        found = self._reader.at(number_of(request, "time", self._clock.now()))
        if found is None:
            return answers.MomentAnswer()
        return answers.MomentAnswer(
            time=found.time, seconds=found.seconds, earlier=found.earlier, later=found.later,
            **{kind: tuple(rate_row(*each) for each in zip(rates.names, rates.numbers.tolist(), strict=True))
               for kind, rates in found.rates.items()})

    def _rates(self, request: answers.Json) -> answers.RatesAnswer:
        """One ``target`` or ``job`` over so many ``seconds``, ``until`` a time; now if it is left out."""
        kind, name = named(request)
        seconds, until = number_of(request, "seconds", 3600), number_of(request, "until", 0)
        if not (MINUTE_SECONDS <= seconds <= MAX_SECONDS and 0 <= until < MAX_TIME):
            raise ValueError(f"a range is between 1 minute and {MAX_SECONDS // 86400} days, and ends at a time in "
                             "seconds since 1970")
        key, now = (kind, name, seconds, until), self._clock.now()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and 0 <= now - kept.made_at < FRESH_SECONDS:
            return kept.answer
        answer = self._made(kind, name, (until or now) - seconds, until or now)
        with self._lock:
            self._kept[key] = _Kept(self._clock.now(), answer)
            self._kept.move_to_end(key)
            if len(self._kept) > MAX_ANSWERS:
                self._kept.popitem(last=False)
        return answer

    def _made(self, kind: str, name: str, since: float, until: float) -> answers.RatesAnswer:
        now, source, points = self._clock.now(), "journal", list[Point]()
        step, problem = step_of(now - since), ""
        if self.prometheus is not None:
            ask = self.prometheus
            points, problem = self._asked(lambda: ask(kind, name, since, until, step))
            source = "journal" if problem else "Prometheus"
        if source == "journal":
            points = self._reader.of_name(kind, name, since, until, now)
        return answers.RatesAnswer(since=since, until=until, step_seconds=step, points=tuple(points), source=source,
                                   problem=problem)

    def _asked(self, question: Callable[[], list[Point]]) -> tuple[list[Point], str]:
        """What Prometheus answers, or why it does not."""
        if not self._asking.acquire(blocking=False):
            return [], "Prometheus still answers earlier questions"
        try:
            return question(), ""
        except SourceError as error:
            return [], f"Prometheus gives no history: {error}"
        finally:
            self._asking.release()


def named(request: answers.Json) -> tuple[str, str]:
    """Kind and name of the target or job of a request. Raises ValueError."""
    for kind, argument in ((TARGETS, "target"), (JOBS, "job")):
        if name := text_of(request, argument):
            if len(name) > LONGEST_LABEL_BYTES:
                raise ValueError(f"no {argument} has a name of {len(name)} characters")
            return kind, name
    raise ValueError("the request names a target or a job")


def rate_row(name: str, numbers: Sequence[float]) -> answers.RateRow:
    return answers.RateRow(name, *numbers)
