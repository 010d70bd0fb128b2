"""Sums of counters over nodes that never decrease, whatever single nodes do.

* A node that the gather sees for the first time counts from that scrape on: how old its counters are is unknown.
* Later only growth is added. A counter that decreased was reset, and its present value is added.
* A node that does not answer keeps its part of the sums. When it answers again, what it did meanwhile is added.
* A new series of a known node is added in full, if the scrape before was complete and the exporter is still the same
  process; otherwise it counts from this scrape on.
* A series that returns continues from its last value. A node keeps a limited number of such values.
* The growth of a node between two scrapes that name different jobs belongs to no job for certain.
* A counter that grew by more than any node can do in the time is left out until the next scrape confirms it.
* A node that is not in the list any more, and has been absent for long, is forgotten. What it did stays in the sums.

After a restart of the gather the sums begin at zero, as counters of any restarted program. Nothing is stored.

A series is a family with its labels, the kind of the node and, for some families, the job. Histograms are added up by
bucket, not cumulatively, so that nodes with different buckets add up too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import add, sub
from typing import NamedTuple

from tierd.gather.exposition import Family, Layout, Number, Scrape, Slot, is_number
from tierd.gather.rules import FAILS_WITH_ITS_NODE, OTHER, Rule

MAX_PER_SECOND = 1 << 40
"""Growth of a counter of one node in a second above which it is implausible: a terabyte. As in lustre-exporter."""
SPARE_SERIES = 1024
"""Values of absent series that a node keeps, beside as many as it has series."""


class Group(NamedTuple):
    """The nodes of one kind that work for one job."""

    kind: str
    job: str
    """"" for nodes without a job."""


NO_GROUP = Group("", "")


class SeriesKey(NamedTuple):
    """Identity of a series of the rack."""

    family: str
    part: str
    labels: bytes
    upper: float
    kind: str
    job: str | None
    """Value of the label ``jobid``; None for a series without that label."""


class Series:
    """One sum."""

    __slots__ = ("active_at", "key", "shown_at", "total")

    def __init__(self, key: SeriesKey, now: float) -> None:
        self.key = key
        self.total: Number = 0
        self.shown_at = now
        """When a node last had this series."""
        self.active_at = now
        """When it last grew."""


@dataclass(slots=True, eq=False)
class NodeCounters:
    """What the gather remembers of one node."""

    layout: Layout | None = None
    values: Sequence[Number] = ()
    credited_at: float = 0.0
    complete: bool = False
    start: Number | None = None
    group: Group = NO_GROUP
    absent: dict[bytes, Number] = field(default_factory=dict)
    """Last values of series that the node does not show now, by their text."""
    overflowed: bool = False
    """Whether such values were forgotten. A new series may then be an old one."""
    suspect: dict[bytes, Number] = field(default_factory=dict)
    """Implausible values of the last scrape."""
    gauges: Sequence[Number] = ()


@dataclass(slots=True)
class SumStatistics:
    """What happened so far, for the gather's own metrics."""

    resets: int = 0
    implausible: int = 0


class Sums:
    """Counters of all nodes, and their sums."""

    def __init__(self, max_series: int, max_jobs: int, job_idle_seconds: float, forget_seconds: float) -> None:
        """``forget_seconds`` is the time after which absent nodes, and series that no node has, are forgotten."""
        self._max_series = max_series
        self._max_jobs = max_jobs
        self._job_idle_seconds = job_idle_seconds
        self._forget_seconds = forget_seconds
        self._nodes: dict[str, NodeCounters] = {}
        self._growth: dict[tuple[Layout, Group], list[Number]] = {}
        """Growth in this pass, by layout and group, in the order of the layout's counters."""
        self._places: dict[tuple[Layout, Group], list[Series | None]] = {}
        """Series of each counter of a layout for a group; None beyond the limit."""
        self.series: dict[SeriesKey, Series] = {}
        self.families: dict[str, Family] = {}
        self.jobs: dict[str, float] = {}
        """When each job with series of its own was last active or present."""
        self._idle_jobs: set[str] = set()
        """Jobs that nodes still show, and that have lost their series because they were idle."""
        self.jobs_beyond_limit: set[str] = set()
        """Jobs of the last pass that are summed as ``other``."""
        self.statistics = SumStatistics()

    @property
    def nodes(self) -> Mapping[str, NodeCounters]:
        """The nodes that are remembered, by name."""
        return self._nodes

    @property
    def series_dropped(self) -> int:
        """Series of the present layouts that the limit leaves out."""
        return sum(places.count(None) for places in self._places.values())

    def layout_of(self, name: str) -> Layout | None:
        """The last layout of a node."""
        node = self._nodes.get(name)
        return None if node is None else node.layout

    def credit(self, name: str, scrape: Scrape, kind: str, job: str, now: float) -> None:
        """Take the scrape of one node. ``now`` is a time that never goes back."""
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = NodeCounters()
        group = Group(kind, job)
        if node.layout is None:
            self._growing(scrape.layout, group)
            node.values = scrape.counters
        else:
            charged = group if group == node.group else Group(kind, "")
            growth = self._growing(scrape.layout, charged)
            if charged != group:
                self._growing(scrape.layout, group)
            most = max(1.0, now - node.credited_at) * MAX_PER_SECOND
            if scrape.layout is node.layout and not node.suspect and (grown := _grown(node.values, scrape.counters,
                                                                                      most)) is not None:
                growth[:] = map(add, growth, grown)
                node.values = scrape.counters
            else:
                node.values = self._with_care(node, scrape, growth, most)
        node.layout, node.group, node.credited_at = scrape.layout, group, now
        node.complete, node.start, node.gauges = scrape.complete, scrape.start, scrape.gauges

    def _growing(self, layout: Layout, group: Group) -> list[Number]:
        found = self._growth.get((layout, group))
        if found is None:
            found = self._growth[layout, group] = [0] * len(layout.names)
        return found

    def _with_care(self, node: NodeCounters, scrape: Scrape, growth: list[Number], most: float) -> list[Number]:
        """Add each counter by itself. Returns the values from which the next growth counts."""
        layout, before = scrape.layout, node.layout
        assert before is not None
        known = node.absent | dict(zip(before.names, node.values, strict=True))
        suspect, node.suspect = node.suspect, {}
        same = layout is before or layout.names == before.names
        if not same:
            _compare_histograms(known, before, layout, node.values, scrape.counters)
        new_ones_count = node.complete and not node.overflowed and node.start == scrape.start
        reset = {unit for unit, name, value in zip(layout.units, layout.names, scrape.counters, strict=True)
                 if value < known.get(name, 0)}
        self.statistics.resets += len(reset)
        kept: list[Number] = []
        for place, (unit, name, value) in enumerate(zip(layout.units, layout.names, scrape.counters, strict=True)):
            last = known.get(name)
            if last is None:
                delta: Number = value if new_ones_count else 0
            else:
                delta = value if unit in reset else max(0, value - last)
            if delta > most:
                node.suspect[name] = value
                continues = name in suspect and 0 <= value - suspect[name] <= most
                delta = value - suspect[name] if continues else 0
                self.statistics.implausible += not continues
                if continues:
                    del node.suspect[name]
                kept.append(value if continues or last is None else last)
            else:
                kept.append(value)
            growth[place] += delta
        present = set(layout.names)
        self._park(node, {name: value for name, value in known.items() if name not in present}, len(present))
        return kept

    @staticmethod
    def _park(node: NodeCounters, absent: dict[bytes, Number], present: int) -> None:
        node.absent = absent
        for name in list(absent)[:max(0, len(absent) - present - SPARE_SERIES)]:
            del absent[name]
            node.overflowed = True

    def settle(self, present: Collection[str], listed: Collection[str], now: float) -> None:
        """End a pass: add the growth of all nodes to the sums, and forget what is over.

        ``present`` are the nodes that answered, ``listed`` those in the list.
        """
        self._admit_jobs({self._nodes[name].group.job for name in present} - {""}, now)
        for (layout, group), growth in self._growth.items():
            places = self._places.get((layout, group))
            if places is None:
                places = self._places[layout, group] = [self._series(slot, group, now) for slot in layout.counter_slots]
                self.families.update(layout.families)
            for series, grown in zip(places, growth, strict=True):
                if series is not None:
                    series.shown_at = now
                    if grown:
                        series.total += grown
                        series.active_at = now
        self._growth.clear()
        self._forget(listed, now)

    def _admit_jobs(self, jobs: set[str], now: float) -> None:
        """Give jobs series of their own, up to the limit. The order is stable, so that a job keeps its series."""
        self.jobs_beyond_limit = set()
        shown: set[str] = set()
        for (layout, _), growth in self._growth.items():
            if layout.has_jobs:
                shown.update(slot.job for slot in layout.counter_slots if slot.job)
                jobs.update(slot.job for slot, grown in zip(layout.counter_slots, growth, strict=True)
                            if grown and slot.job)
        for job in sorted(jobs):
            self._admit(job, now)
        self._idle_jobs = (self._idle_jobs & shown) - jobs
        for job in sorted(shown - jobs - self._idle_jobs):
            if job not in self.jobs:
                self._admit(job, now)  # a new job; it is idle, or its counters are

    def _admit(self, job: str, now: float) -> None:
        if job in self.jobs:
            self.jobs[job] = now
        elif len(self.jobs) < self._max_jobs:
            self.jobs[job] = now
            self._places.clear()  # it may have been one of the others
        else:
            self.jobs_beyond_limit.add(job)

    def _series(self, slot: Slot, group: Group, now: float) -> Series | None:
        job = slot.job if slot.job is not None else group.job if slot.by_job else None
        if job and job not in self.jobs:
            job = OTHER
        key = SeriesKey(slot.family, slot.part, slot.labels, slot.upper, group.kind, job)
        found = self.series.get(key)
        if found is None and len(self.series) < self._max_series:
            found = self.series[key] = Series(key, now)
        return found

    def _forget(self, listed: Collection[str], now: float) -> None:
        for name in [name for name, node in self._nodes.items()
                     if name not in listed and now - node.credited_at > self._forget_seconds]:
            del self._nodes[name]
        idle = {job for job, active in self.jobs.items() if now - active > self._job_idle_seconds}
        old = [key for key, series in self.series.items()
               if (key.job in idle if key.job else False) or now - series.shown_at > self._forget_seconds]
        for key in old:
            del self.series[key]
        for job in idle:
            del self.jobs[job]
        self._idle_jobs |= idle
        layouts = {node.layout for node in self._nodes.values()}
        if old or idle:
            self._places.clear()
        else:
            self._places = {key: places for key, places in self._places.items() if key[0] in layouts}

    def gauges(self, present: Collection[str], listed: Collection[str]) -> dict[SeriesKey, Number]:
        """The gauges of the nodes that answered, combined by the rule of each family.

        A listed node that does not answer makes the gauges of :data:`FAILS_WITH_ITS_NODE` zero.
        """
        found: dict[SeriesKey, Number] = {}
        for name in listed:
            node = self._nodes.get(name)
            if node is None or node.layout is None:
                continue
            answers = name in present
            for (_, slot, rule), value in zip(node.layout.gauges, node.gauges, strict=True):
                if not answers:
                    if slot.family not in FAILS_WITH_ITS_NODE:
                        continue
                    value = 0  # noqa: PLW2901 -- its last value is out of date
                if not is_number(value):
                    continue
                key = SeriesKey(slot.family, "", slot.labels, 0.0, node.group.kind, slot.job)
                last = found.get(key)
                found[key] = value if last is None else _combined(rule, last, value)
        return found


def _grown(before: Sequence[Number], now: Sequence[Number], most: float) -> list[Number] | None:
    """Growth of each counter; None if one decreased or grew implausibly."""
    grown = list(map(sub, now, before))
    return grown if not grown or (min(grown) >= 0 and max(grown) <= most) else None


def _combined(rule: Rule, last: Number, value: Number) -> Number:
    if rule is Rule.SUM:
        return last + value
    return max(last, value) if rule is Rule.MAX else min(last, value)


def _compare_histograms(known: dict[bytes, Number], before: Layout, layout: Layout, values: Sequence[Number],
                        counters: Sequence[Number]) -> None:
    """Make the earlier buckets of histograms comparable where a node prints other bounds than before.

    Between two bounds that both scrapes have, the earlier count goes to the new buckets from the lowest: a kernel
    prints further bounds only for larger values.
    """
    for whole, rows in layout.buckets.items():
        earlier = before.buckets.get(whole)
        if earlier is None:
            if any(layout.names[number] in known for _, number in rows):  # it was away, with unknown bounds
                known.update((layout.names[number], counters[number]) for _, number in rows)
        elif [bound for bound, _ in earlier] != [bound for bound, _ in rows]:
            for _, number in earlier:
                known.pop(before.names[number], None)
            bounds = {bound for bound, _ in earlier}
            left: Number = 0
            counted = iter(earlier)
            group: list[int] = []
            for bound, number in rows:
                group.append(number)
                if bound not in bounds:
                    continue
                for upper, place in counted:
                    left += values[place]
                    if upper == bound:
                        break
                for each in group[:-1]:
                    known[layout.names[each]] = min(left, counters[each])
                    left -= known[layout.names[each]]
                known[layout.names[group[-1]]] = left
                left, group = 0, []
