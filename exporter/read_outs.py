"""What one file adds to sums: ``stats``, ``rpc_stats`` and ``import`` files, read out by the form they had last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exporter.connected import ConnectionFamilies, Sample
from exporter.counters import Key, Plan, Planner, Rule
from exporter.forms import RpcForm, StatsForm, rpc_forms, stats_forms
from exporter.rpcs import BucketKey, RpcFamilies, RpcKeys
from lustre.formats import import_, rpc_stats, stats

AnyKey = Key | BucketKey


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one file adds to the sums."""

    start: bytes
    keys: Sequence[AnyKey]
    values: Sequence[int]
    gauges: Sequence[Sample]
    """What is the case now."""
    skipped: int
    plan: Plan | None = None
    """Of a ``stats`` file."""
    form: StatsForm | RpcForm | import_.ImportForm | None = None
    """What the device's next text is most likely of."""


ReadOut = Callable[[bytes, Contribution | None], Contribution]
"""Reads a device's text; is also given what was read out of the one before."""


def stats_out(rule: Rule) -> ReadOut:
    """Reads out ``stats`` files."""
    planner = Planner(rule)
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


def rpcs_out(families: RpcFamilies) -> ReadOut:
    """Reads out ``rpc_stats`` files."""
    rows = RpcKeys(families)
    forms = rpc_forms(families)

    def read_out(data: bytes, before: Contribution | None) -> Contribution:
        like = before.form if before is not None and isinstance(before.form, RpcForm) else None
        found = forms.read(data, like)
        if found is not None:
            form, numbers, start = found
            return Contribution(start, form.keys, form.counts(numbers), form.samples(numbers), 0, form=form)
        parsed = rpc_stats.parse(data)
        keys, values = rows.flatten(parsed)
        return Contribution(parsed.start_time, keys, values, tuple(families.gauges(parsed)), parsed.skipped)

    return read_out


def imports_out(families: ConnectionFamilies) -> ReadOut:
    """Reads out ``import`` files."""
    forms = import_.import_forms()
    keys_of: dict[tuple[AnyKey, ...], tuple[AnyKey, ...]] = {}

    def read_out(data: bytes, before: Contribution | None) -> Contribution:
        like = before.form if before is not None and isinstance(before.form, import_.ImportForm) else None
        link, form = import_.watched(data, forms, like)
        counters = list(families.import_counters(link))
        keys: tuple[AnyKey, ...] = tuple([(family, extra) for family, extra, _ in counters])
        keys = keys_of.setdefault(keys, keys)
        values = [value for _, _, value in counters]
        return Contribution(b"", keys, values, list(families.import_gauges(link)), link.skipped, form=form)

    return read_out
