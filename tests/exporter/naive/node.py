"""The node as a whole, its nodemaps, and the management of configurations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Sample
from tests.exporter.naive.reader import Reader

PAGE_POOLS = {
    "max pages": "max_pages",
    "total pages": "pages",
    "total free": "free_pages",
    "grows": "pool_grows_total",
    "grows failure": "pool_grow_failures_total",
    "shrinks": "pool_shrinks_total",
    "cache access": "pool_accesses_total",
    "cache missing": "pool_misses_total",
    "out of mem": "pool_out_of_memory_total",
}
NODEMAP = {
    "trusted_nodemap": "trusted",
    "admin_nodemap": "admin",
    "deny_unknown": "deny_unknown",
    "readonly_mount": "readonly_mount",
    "deny_mount": "deny_mount",
}


def node(reader: Reader) -> Iterator[Sample]:
    if (text := reader.one("version")) is not None:
        yield "lustre_version_info", {"version": text.strip().removeprefix("lustre: ")}, Decimal(1)
    if (text := reader.one("health_check")) is not None:
        yield "lustre_healthy", {}, Decimal(text == "healthy\n")
    if (text := reader.one("memused")) is not None:
        yield "lustre_memory_used_bytes", {}, Decimal(text)
    if (text := reader.lnet("lnet_memused")) is not None:
        yield "lustre_lnet_memory_used_bytes", {}, Decimal(text)
    if (text := reader.one("sptlrpc/encrypt_page_pools")) is not None:
        found = dict(re.findall(r"(\S.*?): +(\d+)", text.replace("objects", "pages")))
        for key, name in PAGE_POOLS.items() if found["cache access"] != "0" else ():
            yield f"lustre_sptlrpc_{name}", {}, Decimal(found[key])
    if (text := reader.one("sptlrpc/page_pools")) is not None:
        for block in text.split("  pool_")[1:]:
            first, *lines = block.splitlines()
            found = dict(line.strip().split(": ") for line in lines)
            for key, name in PAGE_POOLS.items():
                shown = name.removeprefix("pool_").replace("pages", "objects")
                value = Decimal(found[key.replace("pages", "objects").replace(" ", "_")])
                yield f"lustre_page_pool_{shown}", {"size": str(int(first[:-2]) * 1024)}, value


def nodemaps(reader: Reader) -> Iterator[Sample]:
    if (text := reader.one("nodemap/active")) is not None:
        yield "lustre_nodemap_active", {}, Decimal(text)
    for parameter, name in NODEMAP.items():
        for device, text in reader.files("nodemap", parameter):
            yield f"lustre_nodemap_{name}", {"nodemap": device}, Decimal(text)
    for parameter, prefix in (("dt_stats", "lustre_nodemap_ost"), ("md_stats", "lustre_nodemap_mdt")):
        for device, text in reader.files("nodemap", parameter):
            yield from reader.operations(prefix, {"nodemap": device}, text)


def management(reader: Reader) -> Iterator[Sample]:
    for path, file in reader.places("mgc/*/import").items():
        labels, text = {"nid": path.split("/")[1].removeprefix("MGC")}, file.read_text()
        for key, name, label in (("state", "imports", "state"), ("target_version", "targets", "version")):
            for value in re.findall(rf" {key}: (\S+)", text):
                yield f"lustre_mgc_{name}", {**labels, label: value}, Decimal(1)
        for value in re.findall(r"connection_attempts: (\d+)", text):
            yield "lustre_mgc_import_connection_attempts_total", labels, Decimal(value)
    for path, file in reader.places("mgc/*/ir_state").items():
        labels = {"nid": path.split("/")[1].removeprefix("MGC")}
        yield "lustre_mgc_imperative_recovery", labels, Decimal("imperative_recovery: ENABLED" in file.read_text())
    if (text := reader.one("mgs/MGS/eviction_count")) is not None:
        yield "lustre_mgs_evictions_total", {}, Decimal(text)
    if (text := reader.one("mgs/MGS/num_exports")) is not None:
        yield "lustre_mgs_exports", {}, Decimal(text)
    for path, file in reader.places("mgs/MGS/live/*").items():
        fs, text = path.split("/")[3], file.read_text()
        if fs in {"params", "nodemap"}:
            continue
        for kind in ("MDT", "OST"):
            number = sum(bool(re.fullmatch(rf"{fs}-{kind}[0-9a-f]{{4}}", line)) for line in text.splitlines())
            yield "lustre_mgs_targets", {"fs": fs, "kind": kind}, Decimal(number)
        state = re.search(r"\n    state: (\w+)\n", text)
        without = re.search(r"nonir_clients: (\d+)\n", text)
        if state and without:
            yield "lustre_mgs_imperative_recovery", {"fs": fs, "state": state[1]}, Decimal(1)
            yield "lustre_mgs_clients_without_imperative_recovery", {"fs": fs}, Decimal(without[1])
