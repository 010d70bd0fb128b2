"""Targets of a server: operations, room, recovery, their clients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Sample
from tests.exporter.naive.reader import Reader

RECOVERY = {
    "time_remaining": "remaining_seconds",
    "recovery_duration": "duration_seconds",
    "connected_clients": "connected_clients",
    "completed_clients": "completed_clients",
    "evicted_clients": "evicted_clients",
    "queued_requests": "queued_requests",
}


def servers(reader: Reader) -> Iterator[Sample]:
    for kind, prefix, parameter in (("obdfilter", "lustre_ost", "stats"), ("mdt", "lustre_mdt", "md_stats")):
        for device, text in reader.files(kind, parameter):
            if (labels := reader.server(device)) is not None:
                yield from reader.operations(prefix, labels, text)
        yield from reader.numbers(kind, "num_exports", f"{prefix}_exports", reader.server)
        yield from reader.numbers(kind, "no_create", f"{prefix}_no_create", reader.server)
        yield from reader.numbers(kind, "readonly", f"{prefix}_readonly", reader.server)
    yield from reader.room("lustre_ost", "obdfilter", reader.server)
    for parameter, name in (("degraded", "degraded"), ("tot_dirty", "dirty_bytes"),
                            ("tot_granted", "granted_bytes"), ("tot_pending", "pending_bytes")):  # fmt: skip
        yield from reader.numbers("obdfilter", parameter, f"lustre_ost_{name}", reader.server)


def recovery(reader: Reader) -> Iterator[Sample]:
    for kind, prefix in (("obdfilter", "lustre_ost"), ("mdt", "lustre_mdt")):
        yield from reader.numbers(kind, "eviction_count", f"{prefix}_evictions_total", reader.server)
        for device, text in reader.files(kind, "recovery_status"):
            labels = reader.server(device)
            found = dict(re.findall(r"(\w+): +(\S+)", text))
            done = found["status"] in {"INACTIVE", "COMPLETE"}
            yield f"{prefix}_recovering", labels, Decimal(not done)
            for key, name in RECOVERY.items():
                if key in found:
                    yield f"{prefix}_recovery_{name}", labels, Decimal(found[key].split("/")[0])
            whole = [found[key].split("/")[1] for key in ("connected_clients", "completed_clients")
                     if "/" in found.get(key, "")]  # fmt: skip
            if whole:
                yield f"{prefix}_recovery_clients", labels, Decimal(whole[0])


def clients(reader: Reader) -> Iterator[Sample]:
    for kind, prefix in (("obdfilter", "lustre_ost_client"), ("mdt", "lustre_mdt_client")):
        for path, file in reader.places(f"{kind}/*/exports/*/stats").items():
            labels = {**reader.server(path.split("/")[1]), "nid": path.split("/")[3]}
            yield from reader.operations(prefix, labels, file.read_text())
