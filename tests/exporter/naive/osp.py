"""What servers see of other servers' targets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Labels, Sample, added_up
from tests.exporter.naive.links import link
from tests.exporter.naive.reader import Reader

OSP = {
    "active": "active",
    "prealloc_status": "precreate_error",
    "prealloc_reserved": "reserved_objects",
    "sync_changes": "sync_changes",
    "sync_in_progress": "sync_in_progress_changes",
    "destroys_in_flight": "destroys_in_flight",
}


def osp(reader: Reader, *, per_target: bool) -> Iterator[Sample]:
    pools = reader.pools()
    sums: dict[tuple[str, str, str], list[Decimal]] = defaultdict(list)
    for path in reader.places("osp/*-OST*-osc-MDT*/active"):
        device = path.split("/")[1]
        target, mdt = device.split("-")[1], device.split("-")[3]
        pool = ",".join(pools.get(target, []))
        numbers = {name: Decimal(text) for parameter, name in OSP.items()
                   if (text := reader.one(f"osp/{device}/{parameter}")) is not None}  # fmt: skip
        ids = [reader.one(f"osp/{device}/prealloc_{end}") for end in ("next_seq", "last_seq", "next_id", "last_id")]
        if ids[0] == ids[1] and ids[2] and ids[3]:
            numbers["precreated_objects"] = Decimal(int(ids[3]) - int(ids[2]) + 1)
        for name, value in numbers.items():
            labels = {"fs": reader.fs, "target": target, "mdt": mdt}
            if name in {"active", "precreate_error"}:
                if per_target or value != (1 if name == "active" else 0):
                    yield f"lustre_osp_{name}", labels, abs(value)
            elif per_target:
                yield f"lustre_osp_{name}", {**labels, "pool": pool}, value
            else:
                sums[name, mdt, pool].append(value)
    for (name, mdt, pool), values in sums.items():
        total = min(values) if name == "precreated_objects" else sum(values)
        yield f"lustre_osp_{name}", {"fs": reader.fs, "mdt": mdt, "pool": pool}, Decimal(total)
    yield from between_servers(reader, pools, per_target=per_target)


def between_servers(reader: Reader, pools: dict[str, list[str]], *, per_target: bool) -> Iterator[Sample]:
    links: list[tuple[Labels, Iterator[Sample]]] = []
    for device in {path.split("/")[1] for path in reader.places("osp/*/*")}:
        if match := re.fullmatch(r".*-(OST....|MDT....)-os[cp]-(MDT....)", device):
            labels = {"fs": reader.fs, "mdt": match[2], "kind": match[1][:3], "target": match[1],
                      "pool": ",".join(pools.get(match[1], []))}  # fmt: skip
            links.append((labels, link(reader, "osp", device, labels, plain=True)))
    if per_target:
        for _, samples in links:
            yield from samples
    else:
        yield from added_up(sample for _, samples in links for sample in samples)
    asking: list[Sample] = []
    for device in {path.split("/")[1] for path in reader.places("lwp/*/*")}:
        fs_and_mdt, _, owner = device.partition("-lwp-")
        labels = {"fs": reader.fs, "mdt": fs_and_mdt[-7:], "target": owner}
        asking += link(reader, "lwp", device, labels, plain=True)
    for name, labels, value in added_up(iter(asking)):
        yield name, {"target" if key == "mdt" else key: text for key, text in labels.items()}, value
