"""Forms of ``stats`` and ``rpc_stats``: the meaning and rendering of the numbers in thousands of similar texts.

They are used only if ``lustre/formats/_texts.c`` was compiled. The Python parsers read a text of any other form.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from exporter import templates
from exporter.counters import StatsPlan, StatsPlanner
from exporter.exposition import Family, Gauge
from exporter.rpc_stats import BucketKey, RpcFamilies, bounds_of, bucket_keys, directions
from exporter.templates import Row, of_samples, of_table
from lustre.formats import rpc_stats, stats
from lustre.formats.opcodes import Opcode
from lustre.formats.outline import Forms, Outline


@dataclass(frozen=True, slots=True, eq=False)
class StatsForm:
    """Numbers in the order of a plan's keys."""

    outline: Outline
    timed: bool
    plan: StatsPlan
    packed: tuple[bytes, ...]
    """Packed template of each family of the plan."""

    def row(self, labels: bytes, numbers: tuple[int, ...]) -> Row:
        return Row(self.plan.families, (self.packed, labels, numbers))


def stats_forms(planner: StatsPlanner) -> Forms[StatsForm]:
    """Return the forms of ``stats`` files, with the plans of the planner."""

    def make(data: bytes) -> StatsForm | None:
        parsed = stats.parse(data)
        plan, _ = planner.plan(parsed)
        outline = None if parsed.skipped else stats.outline_of(data, plan.places)
        if outline is None or (packed := templates.packed(plan.shared)) is None:
            return None
        return StatsForm(outline, bool(parsed.start_time), plan, packed)

    return Forms(make)


@dataclass(frozen=True, slots=True, eq=False)
class RpcForm:
    """Numbers of gauges, then counts of tables, column by column."""

    outline: Outline
    timed: bool
    gauges: tuple[tuple[Gauge, bytes], ...]
    keys: tuple[BucketKey, ...]
    """Keys of the counts."""
    families: tuple[Family, ...]
    """Families of gauges and tables, each once."""
    packed: tuple[bytes, ...]
    """Packed template of each family."""

    def samples(self, numbers: tuple[int, ...]) -> list[tuple[Gauge, bytes, int]]:
        return [(family, extra, number) for (family, extra), number in zip(self.gauges, numbers, strict=False)]

    def counts(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        return numbers[len(self.gauges) :]

    def row(self, labels: bytes, numbers: tuple[int, ...]) -> Row:
        return Row(self.families, (self.packed, labels, numbers))


def rpc_forms(families: RpcFamilies) -> Forms[RpcForm]:
    """Return the forms of files whose histograms belong to these families."""
    of_gauges, of_tables = families.of_gauges(), families.of_tables()
    wanted = frozenset({*of_gauges, *of_tables})

    def make(data: bytes) -> RpcForm | None:
        form = rpc_stats.form_of(data, rpc_stats.parse(data), wanted)
        if form is None:
            return None
        gauges = tuple([of_gauges[field] for field in form.gauges])
        tables = tuple([(family, directions(table.columns), bounds_of(table, unit))
                        for field, table in form.tables for family, unit in (of_tables[field],)])
        families = (*[family for family, _ in groupby(gauges, itemgetter(0))], *[family for family, _, _ in tables])
        if len(set(families)) < len(families):
            return None
        shared = [
            *[of_samples(family, Opcode.LABELS, [extra for _, extra in of])
              for family, of in groupby(gauges, itemgetter(0))],
            *[of_table(family, Opcode.LABELS, extras, bounds) for family, extras, bounds in tables],
        ]
        packed = templates.packed(shared)
        if packed is None:
            return None
        return RpcForm(form.outline, form.timed, gauges, bucket_keys(tables), families, packed)

    return Forms(make)
