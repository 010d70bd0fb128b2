"""Converts the counters of a ``stats`` file to samples: the family of each counter, and templates for its lines.

All collectors of such parameters use it. A :class:`StatsRule` assigns counters to families. A :class:`StatsPlan` is the
rule applied to the counters of a file; files with equal counters share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from exporter import templates
from exporter.exposition import Counter, escape
from lustre.formats.opcodes import Opcode
from lustre.formats.stats import Stats, is_no_sum

CounterKey = tuple[Counter, bytes]
"""A family, and further label text of a sample (``,operation="read"``)."""
Chunks = tuple[tuple[Counter, bytes], ...]
Shape = tuple[tuple[bytes, ...], tuple[bytes, ...], tuple[bool, ...], bool]
"""Names, units and presence of a sum of each counter, and whether this release times operations."""


@dataclass(frozen=True, slots=True, eq=False)
class StatsRule:
    """The families of the counters of one kind of ``stats`` file."""

    operations: Counter
    """Family for the samples of every counter without a rule below."""
    seconds: Counter | None = None
    """Family for the sums of these counters, if in microseconds."""
    byte_sums: Mapping[bytes, Counter] = field(default_factory=dict)
    """Families for the sums of byte counters."""
    implied: Mapping[bytes, bytes] = field(default_factory=dict)
    """Operations that releases without latencies (up to 2.13) count only in byte counters."""
    special: Mapping[bytes, tuple[Counter | None, Counter | None]] = field(default_factory=dict)
    """Families for samples and sum of counters that are not operations."""
    only: frozenset[bytes] | None = None
    """Names of the counters to show; None shows all."""

    def families(self) -> tuple[Counter, ...]:
        more = [family for pair in self.special.values() for family in pair]
        every = (*self.byte_sums.values(), self.operations, self.seconds, *more)
        return tuple([family for family in every if family is not None])


@dataclass(frozen=True, slots=True, eq=False)
class StatsPlan:
    """A rule applied to one set of counters."""

    keys: tuple[CounterKey, ...]
    """The key of each value, family by family."""
    places: tuple[int, ...]
    """The index of each value in the columns (samples, then sums)."""
    pick: Callable[[Sequence[bytes]], tuple[bytes, ...]]
    """Picks the values from the columns."""
    families: tuple[Counter, ...]
    """Families of the values, each once."""
    shared: tuple[bytes, ...]
    """Template of each family, with a place for the labels."""
    unknown: int
    """Number of counters without a family."""

    def lines(self, labels: bytes, numbers: Iterable[int]) -> Chunks:
        """Return finished lines, family by family."""
        found: dict[Counter, list[bytes]] = {}
        for (family, extra), number in zip(self.keys, numbers, strict=True):
            found.setdefault(family, []).append(family.counted(labels + extra, number))
        return tuple([(family, b"".join(lines)) for family, lines in found.items()])


class StatsPlanner:
    """Caches the plans of one rule. Thousands of files share a few sets of counters."""

    def __init__(self, rule: StatsRule) -> None:
        self._untimed = rule
        self._timed = replace(rule, implied={})
        self._plans: dict[Shape, StatsPlan] = {}

    def plan(self, stats: Stats) -> tuple[StatsPlan, Sequence[bytes]]:
        samples, sums = stats.samples, stats.sums
        if any(map(is_no_sum, sums)):
            sums = tuple([b"" if is_no_sum(digits) else digits for digits in sums])
        timed = bool(stats.start_time) or b"usecs" in stats.units
        shape = (stats.names, stats.units, tuple(map(bool, sums)), timed)
        plan = self._plans.get(shape)
        if plan is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            plan = self._plans[shape] = _make(self._untimed if not timed else self._timed, shape)
        return plan, samples + sums


MAX_PLANS = 256
"""Limit on the number of plans, far above that of any node."""


def _make(rule: StatsRule, shape: Shape) -> StatsPlan:
    names, units, summed, _ = shape
    wanted: dict[Counter, list[tuple[bytes, int]]] = {}
    taken: set[CounterKey] = set()
    unknown = 0
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        if rule.only is not None and name not in rule.only:
            continue
        outputs = list(_outputs(rule, names, name, unit))
        unknown += not outputs and name not in rule.special
        for family, extra, is_sum in outputs:
            if is_sum and not summed[i]:
                unknown += unit in {b"usecs", b"bytes"}
                continue
            if (family, extra) in taken:  # a repeated counter must not repeat a series
                unknown += 1
                continue
            taken.add((family, extra))
            wanted.setdefault(family, []).append((extra, i + len(names) * is_sum))
    keys = tuple([(family, extra) for family, of_family in wanted.items() for extra, _ in of_family])
    indices = tuple([index for of_family in wanted.values() for _, index in of_family])
    shared = tuple([
        templates.of_samples(family, Opcode.LABELS, [extra for extra, _ in of_family])
        for family, of_family in wanted.items()
    ])  # fmt: skip
    return StatsPlan(keys, indices, _picker(indices), tuple(wanted), shared, unknown)


def _outputs(
    rule: StatsRule, names: tuple[bytes, ...], name: bytes, unit: bytes
) -> Iterator[tuple[Counter, bytes, bool]]:
    """Yield family, further label text, and whether the value is the sum."""
    if name in rule.special:
        of_samples, of_sum = rule.special[name]
        if of_samples is not None:
            yield of_samples, b"", False
        if of_sum is not None and (unit == b"usecs" or of_sum.unit != "seconds"):
            yield of_sum, b"", True
    elif unit == b"bytes":
        if name in rule.byte_sums:
            yield rule.byte_sums[name], b"", True
        if name in rule.implied and rule.implied[name] not in names:
            yield rule.operations, operation(rule.implied[name]), False
    else:
        yield rule.operations, operation(name), False
        if unit == b"usecs" and rule.seconds is not None:
            yield rule.seconds, operation(name), True


def operation(name: bytes) -> bytes:
    return b',operation="%b"' % escape(name)


def _picker(indices: tuple[int, ...]) -> Callable[[Sequence[bytes]], tuple[bytes, ...]]:
    if len(indices) > 1:
        return itemgetter(*indices)
    return lambda columns: tuple([columns[i] for i in indices])
