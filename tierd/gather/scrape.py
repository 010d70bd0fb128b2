"""Scrapes all nodes at once and gives one exposition for them.

A scrape of the gather scrapes the nodes, as a scrape of any exporter reads its sources. Requests at the same time share
one pass, and requests shortly after it get its result, so that several Prometheus servers cost the nodes nothing more.
A node that is slow, hangs or sends nonsense is left out of the pass; its part of the sums stands still.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from operator import itemgetter

from tierd.gather.exposition import Family, Layouts, Number, Scrape, label_text
from tierd.gather.rules import JOBID, NODE_KIND
from tierd.gather.settings import Settings
from tierd.gather.sums import SeriesKey, Sums
from tierd.sense.discovery import FileTargets, LabelledTarget, url_of
from tierd.sense.exporters import ParallelFetch
from tierd.sense.http_client import SourceError

FetchNode = Callable[[str], bytes]
"""The exposition at a URL. Raises SourceError."""
MALFORMED, UNREACHABLE = "malformed", "unreachable"
MAX_LOGGED_NODES = 5


class MalformedError(SourceError):
    """A node's exposition is not valid. Nothing of it is used."""


@dataclass(slots=True)
class NodeState:
    """What the gather's own page shows of a node."""

    up: bool = False
    answered_at: float | None = None
    """By the monotonic clock; None without an answer so far."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Pass:
    """The result of one pass over all nodes."""

    families: tuple[tuple[Family, bytes], ...]
    """Each family with its finished lines."""
    ended_at: float
    seconds: float
    nodes: Mapping[str, NodeState]
    series: int
    jobs: int
    jobs_beyond_limit: int
    series_dropped: int


@dataclass(slots=True)
class GatherCounters:
    """What happened since the start."""

    scrapes: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Failed scrapes of nodes by reason."""


class Gather:
    """All nodes of a rack and their sums. Any thread may call :meth:`run`; one pass runs at a time."""

    def __init__(self, settings: Settings, fetch: FetchNode, clock: Callable[[], float],
                 log: Callable[[str], None] = lambda _: None) -> None:
        self._settings = settings
        self._fetch = fetch
        self._clock = clock
        self._log = log
        self._files = FileTargets(settings.target_files)
        self._layouts = Layouts()
        self.sums = Sums(settings.max_series, settings.max_jobs, settings.job_idle_seconds, settings.forget_seconds)
        self._parallel: ParallelFetch[Scrape] = ParallelFetch(self._one, settings.deadline_seconds, settings.threads)
        self._nodes: dict[str, NodeState] = {}
        self._lock = threading.Lock()
        self._last: Pass | None = None
        self._logged = ""
        self.counters = GatherCounters()

    @property
    def last(self) -> Pass | None:
        """The last pass; None before the first."""
        return self._last

    def targets(self) -> dict[str, LabelledTarget]:
        """The nodes by URL, from the settings and the files. A node that is listed twice counts once."""
        fixed = [LabelledTarget(url_of(target), {}) for target in self._settings.targets]
        found: dict[str, LabelledTarget] = {}
        for target in (*fixed, *self._files.targets()):
            found.setdefault(target.url, target)
        return found

    def run(self, seconds: float) -> Pass:
        """Scrape all nodes within ``seconds``, or return the result of a pass that has just ended."""
        with self._lock:
            last = self._last
            if last is None or not 0 <= self._clock() - last.ended_at < self._settings.min_interval_seconds:
                last = self._last = self._scraped(seconds)
            return last

    def _scraped(self, seconds: float) -> Pass:
        began = self._clock()
        targets = self.targets()
        found, errors = self._parallel(list(targets), min(seconds, self._settings.deadline_seconds))
        now = self._clock()
        for url, scrape in found.items():
            labels = targets[url].labels
            self.sums.credit(url, scrape, labels.get(NODE_KIND, self._settings.node_kind),
                             labels.get(JOBID, scrape.layout.job), now)
        self.sums.settle(found.keys(), targets.keys(), now)
        self._layouts.keep(node.layout for node in self.sums.nodes.values() if node.layout is not None)
        self._note(targets, found, errors, now)
        families = self._exposition(found, targets)
        self.counters.scrapes += 1
        states = {url: NodeState(node.up, node.answered_at, node.problem) for url, node in self._nodes.items()}
        ended = self._clock()
        return Pass(families, ended, ended - began, states, len(self.sums.series), len(self.sums.jobs),
                    len(self.sums.jobs_beyond_limit), self.sums.series_dropped)

    def _one(self, url: str) -> Scrape:
        body = self._fetch(url)
        try:
            return self._layouts.parse(body, self.sums.layout_of(url))
        except ValueError as error:
            raise MalformedError(f"{url}: invalid data: {error}") from error

    def _note(self, targets: Mapping[str, LabelledTarget], found: Mapping[str, Scrape],
              errors: Mapping[str, SourceError], now: float) -> None:
        """Keep the state of each node, and log the nodes that failed when they change."""
        self._nodes = {url: self._nodes.get(url) or NodeState() for url in targets}
        for url in found:
            self._nodes[url] = NodeState(True, now)
        for url, error in errors.items():
            state = self._nodes[url]
            state.up, state.problem = False, str(error)
            self.counters.failures[MALFORMED if isinstance(error, MalformedError) else UNREACHABLE] += 1
        problems = [self._files.problem] if self._files.problem else []
        failed = sorted(errors)
        if failed:
            named = "; ".join(str(errors[url]) for url in failed[:MAX_LOGGED_NODES])
            more = f" (and {len(failed) - MAX_LOGGED_NODES} more)" if len(failed) > MAX_LOGGED_NODES else ""
            problems.append(f"{len(failed)} of {len(targets)} nodes are left out: {named}{more}")
        shown = "; ".join([*problems[:len(problems) - bool(failed)], *failed])
        if shown != self._logged:
            self._logged = shown
            self._log("; ".join(problems) or f"all {len(targets)} nodes answer")

    def _exposition(self, found: Mapping[str, Scrape], targets: Mapping[str, LabelledTarget]
                    ) -> tuple[tuple[Family, bytes], ...]:
        lines: dict[str, list[bytes]] = {}
        histograms: dict[tuple[str, bytes], dict[float, Number]] = {}
        totals: dict[tuple[str, bytes], Number] = {}
        for key, series in self.sums.series.items():
            if key.part == "bucket":
                histograms.setdefault((key.family, labels_of_series(key)), {})[key.upper] = series.total
            elif key.part == "sum":
                totals[key.family, labels_of_series(key)] = series.total
            else:
                lines.setdefault(key.family, []).append(sample(key.family, labels_of_series(key), series.total))
        for key, value in self.sums.gauges(found.keys(), targets.keys()).items():
            lines.setdefault(key.family, []).append(sample(key.family, labels_of_series(key), value))
        for (name, labels), buckets in histograms.items():
            lines.setdefault(name, []).extend(histogram_lines(name, labels, buckets, totals.get((name, labels))))
        families = self.sums.families | {name: family for node in self.sums.nodes.values() if node.layout is not None
                                         for name, family in node.layout.families.items() if name in lines}
        return tuple((families[name], b"".join(chunk)) for name, chunk in sorted(lines.items(), key=itemgetter(0)))


def labels_of_series(key: SeriesKey) -> bytes:
    """Text of all labels of a series. Kind and job come first: readers split the text before ``operation``.

    >>> labels_of_series(SeriesKey("f", "", b'fs="a",operation="read"', 0.0, "gpu", "j1"))
    b'node_kind="gpu",jobid="j1",fs="a",operation="read"'
    """
    added = {NODE_KIND: key.kind} if key.kind else {}
    if key.job is not None:
        added[JOBID] = key.job
    return b",".join(part for part in (label_text(added), key.labels) if part)


def sample(name: str, labels: bytes, value: Number) -> bytes:
    r"""One finished line.

    >>> sample("a", b"", 5), sample("a", b'x="1"', 0.5)
    (b'a 5\n', b'a{x="1"} 0.5\n')
    """
    return b"%b%b %b\n" % (name.encode(), b"{%b}" % labels if labels else b"", number_text(value))


def number_text(value: Number) -> bytes:
    """A value as the exposition format writes it."""
    if isinstance(value, int):
        return b"%d" % value
    return repr(value).encode().replace(b"inf", b"Inf").replace(b"nan", b"NaN")


def histogram_lines(name: str, labels: bytes, buckets: Mapping[float, Number], total: Number | None) -> list[bytes]:
    r"""The lines of one histogram from counts that are not cumulative.

    >>> histogram_lines("a", b'x="1"', {2.0: 3, 1.0: 1, inf: 0}, None)[1]
    b'a_bucket{x="1",le="2.0"} 4\n'
    """
    lines: list[bytes] = []
    count: Number = 0
    begin = labels + b"," if labels else b""
    for upper in sorted(buckets):
        count += buckets[upper]
        bound = b"+Inf" if upper == inf else repr(upper).encode()
        lines.append(sample(f"{name}_bucket", b'%ble="%b"' % (begin, bound), int(count)))
    if total is not None:
        lines += [sample(f"{name}_sum", labels, total), sample(f"{name}_count", labels, int(count))]
    return lines
