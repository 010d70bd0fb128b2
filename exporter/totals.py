"""Sums over the targets of a mount: per file system, mount and pool, instead of per target.

A client of 2,000 object targets would be 170,000 series; the sums are a few hundred. They only grow
(``exporter.ledger``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from exporter.connected import Sample
from exporter.counters import Key
from exporter.families import Family, Histogram
from exporter.ledger import Ledger
from exporter.node import Node
from exporter.page import Page
from exporter.read_outs import AnyKey, Contribution, ReadOut
from exporter.text_format import label_text, seconds
from lustre.formats.compiled import mark_below_times


class Labelled(Protocol):
    """What a sum is over."""

    def __hash__(self) -> int:
        """Two that are the same have one sum."""

    def labels(self) -> bytes:
        """As they stand between the braces."""


G = TypeVar("G", bound=Labelled)


class Group(NamedTuple):
    """What a client's sums are over: the targets of a mount that are in a pool, or in none."""

    fs: str
    mount: str
    pool: str
    """A target in several pools belongs to a group of its own, named after all of them."""

    def labels(self) -> bytes:
        """As they stand between the braces."""
        return label_text(fs=self.fs, mount=self.mount, pool=self.pool)


Combine = Callable[[int, int], int]
"""Makes one value of two targets'."""


class Summed(Generic[G]):
    """All files of one parameter, summed by group."""

    def __init__(
        self,
        kind: str,
        name: str,
        read_out: ReadOut,
        mark: Callable[[bytes], int] = mark_below_times,
    ) -> None:
        self._kind = kind
        self._name = name
        self._read_out = read_out
        self._mark = mark
        """Of what does not change by itself."""
        self._ledger: Ledger[G, AnyKey] = Ledger()
        self._last: dict[str, tuple[int, Contribution]] = {}
        """By device: the mark, and what was read out."""
        self._groups: Mapping[str, G] = {}

    def refresh(self, node: Node, groups: Mapping[str, G]) -> None:
        """Read every device; credit what changed."""
        last: dict[str, tuple[int, Contribution]] = {}
        self._groups = groups
        self._ledger.begin(groups)
        for device, data in node.read_each(self._kind, self._name, groups):
            mark = self._mark(data)
            before = self._last.get(device)
            if before is not None and before[0] == mark:
                contribution = before[1]
            else:
                contribution = self._read_out(data, None if before is None else before[1])
                whole = not contribution.skipped
                self._ledger.credit(device, contribution.start, contribution.keys, contribution.values, whole=whole)
            last[device] = mark, contribution
            if contribution.skipped:
                node.skipped(self._kind, self._name, contribution.skipped)
        self._last = last

    def put(self, page: Page, combine: Mapping[Family, Combine] | None = None) -> None:
        """The sums of every group that has a target now."""
        for group in self.groups:
            put_totals(page, group.labels(), self._ledger.totals(group))
        gauges = [(self._groups[device], contribution.gauges) for device, (_, contribution) in self._last.items()]
        put_gauges(page, gauges, combine or {})

    def contributions(self) -> Mapping[str, Contribution]:
        """By device."""
        return {device: contribution for device, (_, contribution) in self._last.items()}

    @property
    def groups(self) -> list[G]:
        """Groups that have a target now."""
        return sorted(self._ledger.groups, key=lambda group: group.labels())

    def by_group(self) -> Mapping[G, Mapping[AnyKey, int]]:
        """The sums themselves, also of groups that have lost their last target."""
        return self._ledger.every()


def put_totals(
    page: Page, labels: bytes, totals: Mapping[AnyKey, int], sums: Mapping[tuple[Histogram, bytes], Key] | None = None
) -> None:
    """Lines of the sums of one group. ``sums`` says which counter is the sum of what a histogram counts."""
    tables: dict[tuple[Histogram, bytes], list[tuple[float, int]]] = {}
    for key, value in totals.items():
        if len(key) == 2:
            family, extra = key
            digits = b"%d" % value
            page.add(family, family.line(labels + extra, seconds(digits) if family.unit == "seconds" else digits))
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


def put_gauges(page: Page, samples: Iterable[tuple[G, Iterable[Sample]]], combine: Mapping[Family, Combine]) -> None:
    """One line per group and label, values added up unless ``combine`` says otherwise."""
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
            digits = b"%d" % value
            page.add(family, family.line(labels + extra, seconds(digits) if family.unit == "seconds" else digits))
