"""Pools: room, traffic, targets, spilling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.clients import osc
from tests.exporter.naive.forms import Sample
from tests.exporter.naive.reader import Reader

TRAFFIC = {"read_bytes_total", "write_bytes_total", "operations_total", "operation_seconds_total"}


def pool(reader: Reader) -> Iterator[Sample]:
    pools = reader.pools()
    room: dict[tuple[str, str], Decimal] = {}
    targets: set[str] = set()
    for kind in ("obdfilter", "osp", "osc"):  # who knows best comes last
        for name, labels, value in reader.room("lustre_pool", kind, reader.object_target):
            room[name, labels["target"]] = value
        found = {path.split("/")[1] for path in reader.places(f"{kind}/*/*")}
        targets |= {labels["target"] for device in found if (labels := reader.object_target(device))}
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    reporting = {target for _, target in room}
    of_target = [(name, target, value) for (name, target), value in room.items()]
    of_target += [("lustre_pool_targets", target, Decimal(1)) for target in targets]
    of_target += [("lustre_pool_targets_reporting", target, Decimal(target in reporting)) for target in targets]
    for name, target, value in of_target:
        for pool in pools.get(target, [""]):
            sums[name, pool] += value
    for (name, pool), value in sums.items():
        yield name, {"fs": reader.fs, "pool": pool}, value
    for target in targets if reader.places("mdt/*/*") else ():
        labels = {"fs": reader.fs, "target": target, "pool": ",".join(pools.get(target, []))}
        yield "lustre_pool_target_info", labels, Decimal(1)
    yield from traffic(reader, pools)
    yield from spill(reader)


def traffic(reader: Reader, pools: dict[str, list[str]]) -> Iterator[Sample]:
    traffic: dict[tuple[str, frozenset[tuple[str, str]]], Decimal] = defaultdict(Decimal)
    for name, labels, value in osc(reader):
        short = name.removeprefix("lustre_osc_")
        if short in TRAFFIC:
            for pool in pools.get(labels["target"], [""]):
                kept = {key: text for key, text in labels.items() if key != "target"} | {"pool": pool}
                traffic[f"lustre_pool_{short}", frozenset(kept.items())] += value
    for (name, kept_labels), value in traffic.items():
        yield name, dict(kept_labels), value


def spill(reader: Reader) -> Iterator[Sample]:
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for path, file in reader.places("lod/*/pool/*/spill_*").items():
        pool, parameter = path.split("/")[-2:]
        if parameter in {"spill_is_active", "spill_threshold_pct", "spill_hit"}:
            found[parameter, pool].append(int(file.read_text()))
    for (parameter, pool), values in found.items():
        labels = {"fs": reader.fs, "pool": pool}
        if parameter == "spill_is_active":
            yield "lustre_pool_spill_active", labels, Decimal(max(values))
        elif parameter == "spill_hit":
            yield "lustre_pool_spilled_files_total", labels, Decimal(sum(values))
        else:
            yield "lustre_pool_spill_threshold_ratio", labels, Decimal(max(values)) / 100
