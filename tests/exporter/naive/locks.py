"""Locks, by kind of namespace."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from tests.exporter.naive.forms import Sample, counters
from tests.exporter.naive.reader import Reader

OF_CLIENT = {"lock_count": "locks", "lock_unused_count": "unused_locks"}
OF_SERVER = {
    "lock_count": "locks",
    "resource_count": "resources",
    "lock_timeouts": "lock_timeouts_total",
    "contention_events": "contention_events_total",
    "pool/granted": "pool_granted_locks",
    "pool/limit": "pool_limit_locks",
    "pool/grant_plan": "pool_grant_plan_locks",
}


def locks(reader: Reader) -> Iterator[Sample]:
    sums: dict[tuple[str, str, str, str], int] = defaultdict(int)
    for path, file in reader.places("ldlm/namespaces/*/*").items():
        lock_file(reader, sums, path.split("/")[2], path.split("/")[3], file)
    for path, file in reader.places("ldlm/namespaces/*/pool/*").items():
        lock_file(reader, sums, path.split("/")[2], "pool/" + path.split("/")[4], file)
    for (name, fs, mount, kind), value in sums.items():
        yield f"lustre_ldlm_{name}", {"fs": fs, "mount": mount, "namespace": kind}, Decimal(value)
    for parameter, name in (("granted_count", "granted"), ("limit_count", "limit"),
                            ("reclaim_threshold_count", "reclaim_threshold")):  # fmt: skip
        if (text := reader.one(f"ldlm/lock_{parameter}")) is not None:
            yield f"lustre_ldlm_server_{name}_locks", {}, Decimal(text)


def lock_file(reader: Reader, sums: dict[tuple[str, str, str, str], int], namespace: str, parameter: str,
              file: Path) -> None:
    of_mount = reader.client(namespace)
    if of_mount is not None:
        group, wanted = (reader.fs, of_mount["mount"], namespace.split("-")[2]), OF_CLIENT
    elif namespace == "MGS":
        group, wanted = ("", "", "mgs"), OF_SERVER
    elif namespace.startswith(("filter-", "mdt-")):
        group, wanted = (reader.fs, "", "mdt" if namespace.startswith("mdt-") else "ost"), OF_SERVER
    elif re.search(r"MDT....-osp-MDT", namespace):
        group, wanted = (reader.fs, "", "osp"), OF_CLIENT
    else:
        return
    if parameter in wanted:
        sums[(wanted[parameter], *group)] += int(file.read_text())
    elif parameter == "pool/stats" and wanted is OF_SERVER:
        for name, _, _, total in counters(file.read_text()):
            if name in {"grant", "cancel"}:
                sums[(f"pool_{name}s_total", *group)] += total
