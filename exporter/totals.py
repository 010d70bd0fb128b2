"""Sums over the targets of a mount, by file system, mount and pool. They replace series for each target.

A client with 2,000 object targets would have 170,000 series; the sums have a few hundred. The sums only grow
(:mod:`exporter.ledger`). A :class:`Contribution` is the amount that one file (``stats``, ``rpc_stats``, ``import``)
adds to the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from exporter.connection_families import ConnectionFamilies, Sample
from exporter.counters import CounterKey, StatsPlan, StatsPlanner, StatsRule
from exporter.exposition import Family, Histogram, MetricsPage, label_text
from exporter.forms import RpcForm, StatsForm, rpc_forms, stats_forms
from exporter.ledger import Ledger
from exporter.node import Node
from exporter.reading import BELOW_TIMES, Part, Texts
from exporter.rpc_stats import BucketKey, RpcFamilies
from lustre.formats import import_, rpc_stats, stats

SeriesKey = CounterKey | BucketKey


class Contribution(NamedTuple):
    """The amount that one file adds to the sums."""

    start: bytes
    keys: Sequence[SeriesKey]
    values: Sequence[int]
    gauges: Sequence[Sample]
    """Values of the present state."""
    skipped: int
    plan: StatsPlan | None = None
    """Plan of a ``stats`` file; None for other files."""
    form: StatsForm | RpcForm | None = None
    """Most likely form of the device's next text."""


ReadContribution = Callable[[bytes, Contribution | None], Contribution]
"""Reads the contribution of a device's text. The second argument is the contribution of the previous text."""


def stats_contributions(rule: StatsRule) -> ReadContribution:
    planner = StatsPlanner(rule)
    forms = stats_forms(planner)

    def read_out(data: bytes, before: Contribution | None) -> Contribution:
        like = before.form if before is not None and isinstance(before.form, StatsForm) else None
        found = forms.read(data, like)
        if found is not None:
            form, numbers, start = found
            return Contribution(start, form.plan.keys, numbers, (), form.plan.unknown, form.plan, form)
        parsed = stats.parse(data)
        plan, columns = planner.plan(parsed)
        values = list(map(int, plan.pick(columns)))
        return Contribution(parsed.start_time, plan.keys, values, (), parsed.skipped + plan.unknown, plan)

    return read_out


def rpc_stats_contributions(families: RpcFamilies) -> ReadContribution:
    forms = rpc_forms(families)

    def read_out(data: bytes, before: Contribution | None) -> Contribution:
        like = before.form if before is not None and isinstance(before.form, RpcForm) else None
        found = forms.read(data, like)
        if found is not None:
            form, numbers, start = found
            return Contribution(start, form.keys, form.counts(numbers), form.samples(numbers), 0, form=form)
        parsed = rpc_stats.parse(data)
        keys, values = families.counts(parsed)
        return Contribution(parsed.start_time, keys, values, tuple(families.gauges(parsed)), parsed.skipped)

    return read_out


def import_contributions(families: ConnectionFamilies) -> ReadContribution:
    keys_of: dict[tuple[SeriesKey, ...], tuple[SeriesKey, ...]] = {}

    def read_out(data: bytes, _: Contribution | None) -> Contribution:
        link = import_.parse(data)
        counters = list(families.import_counters(link))
        keys: tuple[SeriesKey, ...] = tuple([(family, extra) for family, extra, _ in counters])
        keys = keys_of.setdefault(keys, keys)  # one object for equal keys, as the ledger wants
        values = [value for _, _, value in counters]
        return Contribution(b"", keys, values, list(families.import_gauges(link)), link.skipped)

    return read_out


class HasLabels(Protocol):
    """A group over which values are summed."""

    def __hash__(self) -> int:
        """Hash of the group. Equal groups share one sum."""

    def labels(self) -> bytes:
        """The label text between the braces of a sample."""


G = TypeVar("G", bound=HasLabels)


class MountPool(NamedTuple):
    """A group of a client: the targets of a mount in a pool, or without a pool."""

    fs: str
    mount: str
    pool: str
    """Name of the pool, or names joined by commas for targets in several pools."""

    def labels(self) -> bytes:
        return label_text(fs=self.fs, mount=self.mount, pool=self.pool)


Combine = Callable[[int, int], int]
"""Combines the values of two targets."""


class SummedParameter(Generic[G]):
    """All files of one parameter, summed by group."""

    def __init__(self, kind: str, name: str, read_out: ReadContribution, part: Part = BELOW_TIMES) -> None:
        """``part`` is the part of a text that the contribution depends on. The rest always changes."""
        self._texts = Texts(kind, name, part)
        self._read_out = read_out
        self._ledger: Ledger[G, SeriesKey] = Ledger()
        self._last: list[Contribution | None] = []
        """The contribution of each device, in the order of ``_texts``."""
        self._contributions: Mapping[str, Contribution] = {}
        self._groups: Mapping[str, G] = {}
        self._changed = 0
        """Number of devices whose text changed in the last pass."""
        self._skipped = 0
        """Number of skipped lines of all devices."""

    def refresh(self, node: Node, groups: Mapping[str, G], quiet: Container[str] = ()) -> None:
        """Read every device, and credit the changed devices. Devices in ``quiet`` keep their last contribution."""
        texts, last, ledger = self._texts, self._last, self._ledger
        implausible = ledger.implausible
        if moved_groups := groups is not self._groups:
            moved = texts.set_devices([*groups])  # what is known moves to the new places of its devices
            last = self._last = [None if at is None else last[at] for at in moved]
            self._groups = groups
        ledger.begin(groups)
        self._changed = 0
        for position, data in node.changed(texts, quiet):
            self._changed += 1
            last[position] = None if data is None else self._read(texts.devices[position], data, last[position])
        if self._changed or moved_groups:
            found = zip(texts.devices, last, strict=True)
            self._contributions = {device: contribution for device, contribution in found if contribution is not None}
            self._skipped = sum([one.skipped for one in self._contributions.values()])
        node.skipped(texts.kind, texts.name, self._skipped)
        node.implausible(texts.kind, texts.name, ledger.implausible - implausible)

    def _read(self, device: str, data: bytes, before: Contribution | None) -> Contribution:
        now = self._read_out(data, before)
        self._ledger.credit(device, now.start, now.keys, now.values, whole=not now.skipped)
        return now

    def put(self, page: MetricsPage, combine: Mapping[Family, Combine] | None = None) -> None:
        page.count_chunks(len(self._contributions), max(0, len(self._contributions) - self._changed))
        for group in self.groups:
            put_totals(page, group.labels(), self._ledger.totals(group))
        gauges = [(self._groups[device], contribution.gauges) for device, contribution in self._contributions.items()]
        put_gauges(page, gauges, combine or {})

    def contributions(self) -> Mapping[str, Contribution]:
        return self._contributions

    @property
    def groups(self) -> list[G]:
        return sorted(self._ledger.groups, key=lambda group: group.labels())

    def by_group(self) -> Mapping[G, Mapping[SeriesKey, int]]:
        """Return the sums of all groups, including groups without a present target."""
        return self._ledger.every()


def put_totals(
    page: MetricsPage,
    labels: bytes,
    totals: Mapping[SeriesKey, int],
    sums: Mapping[tuple[Histogram, bytes], CounterKey] | None = None,
) -> None:
    """Show the sums of one group. ``sums`` maps a histogram to the counter that is its sum."""
    tables: dict[tuple[Histogram, bytes], list[tuple[float, int]]] = {}
    for key, value in totals.items():
        if len(key) == 2:
            family, extra = key
            page.add(family, family.counted(labels + extra, value))
        else:
            histogram, extra, upper = key
            tables.setdefault((histogram, extra), []).append((upper, value))
    for (histogram, extra), rows in tables.items():
        bounds, counts = zip(*sorted(rows), strict=True)
        total = totals.get(sums[histogram, extra]) if sums else None
        page.add(
            histogram,
            histogram.buckets(labels + extra, bounds, counts, b"" if total is None else b"%d" % total),
        )


def put_gauges(
    page: MetricsPage, samples: Iterable[tuple[G, Iterable[Sample]]], combine: Mapping[Family, Combine]
) -> None:
    """Show one line per group and label. Values are added, or combined by the function in ``combine``."""
    found: dict[G, dict[tuple[Family, bytes], int]] = {}
    for group, of_device in samples:
        sums = found.get(group)
        if sums is None:
            sums = found[group] = {}
        for family, extra, value in of_device:
            key = family, extra
            if key not in sums:
                sums[key] = value
            elif family in combine:
                sums[key] = combine[family](sums[key], value)
            else:
                sums[key] += value
    for group, sums in found.items():
        labels = group.labels()
        for (family, extra), value in sums.items():
            page.add(family, family.counted(labels + extra, value))
