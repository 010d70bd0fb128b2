"""Metadata clients and object storage clients of a mount, these by target or added up by pool."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Sample, buckets, counters
from tests.exporter.naive.links import link
from tests.exporter.naive.reader import Reader


def mdc(reader: Reader) -> Iterator[Sample]:
    for device in sorted({path.split("/")[1] for path in reader.places("mdc/*/*")}):
        labels = reader.client(device)
        assert labels is not None
        yield from link(reader, "mdc", device, labels)
    for kind in ("mdc", "lmv"):
        for device, text in reader.files(kind, "md_stats"):
            labels = reader.client(device)
            assert labels is not None
            for name, count, _, _ in counters(text):
                yield f"lustre_{kind}_metadata_operations_total", {**labels, "operation": name}, Decimal(count)
    for device, text in reader.files("mdc", "batch_stats"):
        labels = reader.client(device)
        assert labels is not None
        rows = [(float(bound), int(count)) for bound, count in re.findall(r"^(\d+):\s+(\d+)", text, re.MULTILINE)]
        yield from buckets("lustre_mdc_operations_per_batch", labels, rows)


def osc(reader: Reader) -> Iterator[Sample]:
    """Per target, with its pools joined."""
    pools = reader.pools()
    for device in sorted({path.split("/")[1] for path in reader.places("osc/*/*")}):
        labels = reader.client(device)
        if labels is not None:
            yield from link(reader, "osc", device, {**labels, "pool": ",".join(pools.get(labels["target"], []))})


def osc_summed(reader: Reader) -> Iterator[Sample]:
    """The same, added up by pool. Histograms are added bucket by bucket before they are made cumulative."""
    plain: dict[tuple[str, frozenset[tuple[str, str]]], list[Decimal]] = defaultdict(list)
    tables: dict[tuple[str, frozenset[tuple[str, str]]], dict[str, Decimal]]
    tables = defaultdict(lambda: defaultdict(Decimal))
    last: tuple[object, Decimal] = (None, Decimal(0))
    for name, labels, value in osc(reader):
        target = labels["target"]
        rest = frozenset((key, text) for key, text in labels.items() if key not in {"target", "le"})
        if "le" not in labels:
            plain[name, rest].append(value)
            continue
        before = last[1] if last[0] == (name, rest, target) else Decimal(0)
        tables[name, rest][labels["le"]] += value - before
        last = (name, rest, target), value
    for (name, rest), values in plain.items():
        combine = max if "average" in name else min if name == "lustre_osc_max_pages_per_rpc" else sum
        yield name, dict(rest), Decimal(combine(values))
    for (name, rest), table in tables.items():
        total = Decimal(0)
        for le in sorted(table, key=float):
            total += table[le]
            yield name, {**dict(rest), "le": le}, total
