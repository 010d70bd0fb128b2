"""All targets or jobs, searched, filtered and sorted; and what is known about one target or job, now and over time.

Where Prometheus is the source of counters, it is asked about one target or job first. It is asked in the thread of the
request, with a short limit, and its answer is used again for a while: pages ask with each new status.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from tierd.act.journal.rates import JOBS, KEPT_SECONDS, TARGETS, step_of
from tierd.clock import Clock
from tierd.daemon import answers
from tierd.daemon.cases import cases_of, time_row
from tierd.daemon.requests import Handler, ReadingRequests, count_in, number_of, text_of
from tierd.loads import Loads
from tierd.model import UNSEEN, Window
from tierd.rates import Point, Rates, mean_rates
from tierd.sense.exposition import LONGEST_LABEL_BYTES
from tierd.sense.http_client import SourceError

Row = TypeVar("Row", answers.TargetRow, answers.JobRow)
ROLES = {"slowed": "slowed", "aggressor": "noise", "none": ""}
"""Words for the roles of jobs."""
SHOWN_ROWS, SHOWN_CASES = 50, 30
"""Limits on the targets or jobs beside one, and on its cases."""
SLOWED, NO = "slowed", "none"
CONDITIONS = "degraded", "in recovery", "full", UNSEEN
"""Of targets, by which they are filtered though none is in it now."""


MAX_SECONDS = max(KEPT_SECONDS.values())
"""Longest range of a question."""
MAX_TIME = 1e11
FRESH_SECONDS = 20.0
"""An answer is used again for at most so long."""
MAX_ANSWERS, MAX_QUESTIONS = 64, 2
"""Answers that are kept, and questions to Prometheus at a time: each holds a connection of the port."""

AskRates = Callable[[str, str, float, float, int], list[Point]]
"""Points of a kind and a name, since a time until another, with a step in seconds. Raises SourceError."""


class LoadRequests:
    """Answers about the loads of targets and jobs. Safe in any thread; holds no lock while it waits."""

    def __init__(self, view: ReadingRequests, prometheus: AskRates | None, clock: Clock) -> None:
        self._view, self._reader, self.prometheus, self._clock = view, view.reader, prometheus, clock
        self._asking = threading.BoundedSemaphore(MAX_QUESTIONS)
        self._known = lru_cache(MAX_ANSWERS)(self._made)
        self.requests: Mapping[str, Handler] = {"list": self._list, "about": self._about, "rates": self._rates,
                                                "moment": self._moment}

    def _list(self, request: answers.Json) -> answers.ListAnswer:
        of, most = text_of(request, "of"), count_in(request, "most", 500)
        if of == JOBS:
            return self._jobs(request, self._view.snapshot.jobs, most)
        if of == TARGETS:
            return self._targets(request, self._view.snapshot.targets, most)
        raise ValueError(f"there are lists of {JOBS} and of {TARGETS}, not of {of!r:.40}")

    def _jobs(self, request: answers.Json, rows: Sequence[answers.JobRow], most: int) -> answers.ListAnswer:
        role, user, order = text_of(request, "role"), text_of(request, "user"), text_of(request, "sort")
        if role:
            wanted = chosen(ROLES, role, "role")
            rows = [row for row in rows if row.role == wanted]
        rows = matching(rows, text_of(request, "search"), lambda row: row.job)
        users = self._view.users(row.job for row in rows) if user or "user" in order else {}
        if user:
            rows = [row for row in rows if user.casefold() in users.get(row.job, "").casefold()]
        rows = ordered(rows, order, {
            "job": lambda row: row.job, "user": lambda row: users.get(row.job, "\uffff"),
            "read": lambda row: row.read_bytes, "write": lambda row: row.write_bytes,
            "operations": lambda row: row.operations, "creates": lambda row: row.creates,
            "targets": lambda row: row.targets})
        shown = tuple(rows[:most])
        return answers.ListAnswer(jobs=shown, found=len(rows), users=self._view.users(row.job for row in shown))

    def _targets(self, request: answers.Json, rows: Sequence[answers.TargetRow], most: int) -> answers.ListAnswer:
        pool, condition = text_of(request, "pool"), text_of(request, "condition")
        times = self._view.snapshot.device_time
        pools = {row.pool or NO: row.pool for row in rows}
        words = filter(None, (*CONDITIONS, *(row.condition for row in rows)))
        conditions = {SLOWED: "", NO: "", **{word: word for word in words}}
        if pool:
            wanted = chosen(pools, pool, "pool")
            rows = [row for row in rows if row.pool == wanted]
        if condition:
            wanted = chosen(conditions, condition, "condition")
            rows = [row for row in rows if (row.slowdown if condition == SLOWED else row.condition == wanted)]
        rows = matching(rows, text_of(request, "search"), lambda row: row.target)
        rows = ordered(rows, text_of(request, "sort"), {
            "target": lambda row: row.target,
            "busy": lambda row: times[row.target].utilisation if row.target in times else -1.0,
            "read": lambda row: row.read_bytes, "write": lambda row: row.write_bytes,
            "operations": lambda row: row.operations, "latency": lambda row: row.latency_usec or 0.0,
            "used": lambda row: -1.0 if row.used is None else row.used, "jobs": lambda row: row.jobs})
        shown = tuple(rows[:most])
        return answers.ListAnswer(
            targets=shown, found=len(rows), pools=tuple(sorted(pools)), conditions=tuple(conditions),
            device_time=tuple(time_row(row.target, [times[row.target]]) for row in shown if row.target in times))

    def _about(self, request: answers.Json) -> answers.AboutAnswer:
        kind, name = named(request)
        view = self._view.snapshot
        target = next((row for row in view.targets if kind == TARGETS and row.target == name), None)
        job = next((row for row in view.jobs if kind == JOBS and row.job == name), None)
        found = self._reader.findings_about(kind, name, SHOWN_CASES)
        if not (target or job or found or self._reader.rates.knows(kind, name)):
            raise ValueError(f"nothing is known about a {kind[:-1]} of this name: it is not active, and the journal "
                             "has neither a finding nor a rate of it")
        window, loads = view.window, Loads.of(view.window.loads)
        its = loads.rows(loads.jobs_among({name}) if kind == JOBS else loads.targets_that(lambda each: each == name))
        rates = mean_rates([Window(window.start, window.end, its, {}, spans=window.spans)], int(kind == TARGETS))
        beside = sorted(rate_rows(rates), key=lambda row: (-row.operations, row.name))
        shown = tuple(beside[:SHOWN_ROWS])
        time = view.device_time.get(name) if kind == TARGETS else None
        return answers.AboutAnswer(
            name=name, target=target, job=job, device_time=time_row(name, [time]) if time is not None else None,
            beside=shown, all_beside=len(beside), cases=cases_of(found, self._view.known_cases(), self._reader),
            users=self._view.users([name, *(row.name for row in shown)]))

    def _moment(self, request: answers.Json) -> answers.MomentAnswer:
        """All targets and the busiest jobs at a ``time``; now if it is left out."""
        found = self._reader.rates.at(number_of(request, "time", self._clock.now()))
        if found is None:
            return answers.MomentAnswer()
        return answers.MomentAnswer.of(found, **{kind: rate_rows(rates) for kind, rates in found.rates.items()})

    def _rates(self, request: answers.Json) -> answers.RatesAnswer:
        """One ``target`` or ``job`` over so many ``seconds``, ``until`` a time; now if it is left out."""
        kind, name = named(request)
        seconds, until = number_of(request, "seconds", 3600), number_of(request, "until", 0)
        if not (min(KEPT_SECONDS) <= seconds <= MAX_SECONDS and 0 <= until < MAX_TIME):
            raise ValueError(f"a range is between 1 minute and {MAX_SECONDS // 86400} days, and ends at a time in "
                             "seconds since 1970")
        return self._known(kind, name, seconds, until, int(self._clock.now() // FRESH_SECONDS))

    def _made(self, kind: str, name: str, seconds: float, until: float, _: int) -> answers.RatesAnswer:
        """The answer within one span of :data:`FRESH_SECONDS`, whose number is the last argument."""
        now, source, points = self._clock.now(), "journal", list[Point]()
        until = until or now
        since = until - seconds
        step, problem = step_of(now - since), ""
        if self.prometheus is not None:
            ask = self.prometheus
            points, problem = self._asked(lambda: ask(kind, name, since, until, step))
            source = "journal" if problem else "Prometheus"
        if source == "journal":
            points = self._reader.rates.of_name(kind, name, since, until, now)
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


def chosen(words: Mapping[str, str], word: str, what: str) -> str:
    """The value of a word. Raises ValueError with all words."""
    if word not in words:
        raise ValueError(f"no {what} is called {word!r:.80}; there are {', '.join(filter(None, words)) or 'none'}")
    return words[word]


def matching(rows: Sequence[Row], search: str, name: Callable[[Row], str]) -> Sequence[Row]:
    """The rows whose name has the text, in upper or lower case."""
    wanted = search.casefold()
    return [row for row in rows if wanted in name(row).casefold()] if wanted else rows


def ordered(rows: Iterable[Row], order: str, keys: Mapping[str, Callable[[Row], float | str]]) -> list[Row]:
    """The rows by a column: names from the first, numbers from the highest; the other way round after a ``-``.

    Without an order they stay as they are. Raises ValueError for an unknown column.
    """
    found = list(rows)
    if not order:
        return found
    column = order.removeprefix("-")
    if column not in keys:
        raise ValueError(f"no column is called {column!r:.80}; there are {', '.join(keys)}, and a - before one "
                         "reverses the order")
    key = keys[column]
    numbers = bool(found) and not isinstance(key(found[0]), str)
    return sorted(found, key=key, reverse=numbers != order.startswith("-"))


def named(request: answers.Json) -> tuple[str, str]:
    """Kind and name of the target or job of a request. Raises ValueError."""
    for kind, argument in ((TARGETS, "target"), (JOBS, "job")):
        if name := text_of(request, argument):
            if len(name) > LONGEST_LABEL_BYTES:
                raise ValueError(f"no {argument} has a name of {len(name)} characters")
            return kind, name
    raise ValueError("the request names a target or a job")


def rate_rows(rates: Rates) -> tuple[answers.RateRow, ...]:
    return tuple(answers.RateRow(name, *row) for name, row in zip(rates.names, rates.numbers.tolist(), strict=True))
