"""The plain reader's part for servers, locks, the network and the node as a whole.

Like ``test_values``, it shares nothing with the exporter: it goes through the files with split and int.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

Labels = dict[str, str]
Sample = tuple[str, Labels, Decimal]

SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
BRW = {
    "pages per bulk r/w": ("pages_per_bulk", 1),
    "discontiguous pages": ("discontiguous_pages", 1),
    "discontiguous blocks": ("discontiguous_blocks", 1),
    "disk fragmented I/Os": ("io_fragments", 1),
    "disk I/Os in flight": ("io_in_flight", 1),
    "I/O time (1/1000s)": ("io_seconds", Decimal("0.001")),
    "disk I/O size": ("io_size_bytes", 1),
    "block maps msec": ("block_map_seconds", Decimal("0.001")),
}
COUNTED_SINGLY = {"discontiguous_pages", "discontiguous_blocks", "io_fragments", "io_in_flight"}


def everything(naive: Any, *, per_target: bool = False) -> Iterator[Sample]:
    """All samples of the node, its servers, its locks and its network."""
    reader = Reader(naive, per_target)
    for part in (
        reader.node, reader.locks, reader.network, reader.services, reader.disks, reader.latencies, reader.recovery,
        reader.metadata, reader.clients, reader.quotas, reader.slaves, reader.nodemaps, reader.management,
    ):  # fmt: skip
        yield from part()


class Reader:
    """Reads with what ``Naive`` of ``test_values`` offers: files by name, and tables as buckets."""

    def __init__(self, naive: Any, per_target: bool) -> None:
        self.naive = naive
        self.per_target = per_target
        self.fs = naive.fs

    def one(self, path: str) -> str | None:
        file = self.naive.places(path).get(path)
        return None if file is None else file.read_text()

    def lnet(self, name: str) -> str | None:
        file: Path = self.naive.root / "sys/kernel/debug/lnet" / name
        return file.read_text() if file.exists() else None

    def node(self) -> Iterator[Sample]:
        if (text := self.one("version")) is not None:
            yield "lustre_version_info", {"version": text.strip().removeprefix("lustre: ")}, Decimal(1)
        if (text := self.one("health_check")) is not None:
            yield "lustre_healthy", {}, Decimal(text == "healthy\n")
        if (text := self.one("memused")) is not None:
            yield "lustre_memory_used_bytes", {}, Decimal(text)
        if (text := self.lnet("lnet_memused")) is not None:
            yield "lustre_lnet_memory_used_bytes", {}, Decimal(text)
        if (text := self.one("sptlrpc/encrypt_page_pools")) is not None:
            found = dict(re.findall(r"(\S.*?): +(\d+)", text.replace("objects", "pages")))
            for key, name in PAGE_POOLS.items() if found["cache access"] != "0" else ():
                yield f"lustre_sptlrpc_{name}", {}, Decimal(found[key])
        if (text := self.one("sptlrpc/page_pools")) is not None:
            for block in text.split("  pool_")[1:]:
                first, *lines = block.splitlines()
                found = dict(line.strip().split(": ") for line in lines)
                for key, name in PAGE_POOLS.items():
                    shown = name.removeprefix("pool_").replace("pages", "objects")
                    value = Decimal(found[key.replace("pages", "objects").replace(" ", "_")])
                    yield f"lustre_page_pool_{shown}", {"size": str(int(first[:-2]) * 1024)}, value

    def locks(self) -> Iterator[Sample]:
        sums: dict[tuple[str, str, str, str], int] = defaultdict(int)
        for path, file in self.naive.places("ldlm/namespaces/*/*").items():
            self.lock_file(sums, path.split("/")[2], path.split("/")[3], file)
        for path, file in self.naive.places("ldlm/namespaces/*/pool/*").items():
            self.lock_file(sums, path.split("/")[2], "pool/" + path.split("/")[4], file)
        for (name, fs, mount, kind), value in sums.items():
            yield f"lustre_ldlm_{name}", {"fs": fs, "mount": mount, "namespace": kind}, Decimal(value)
        for parameter, name in (("granted_count", "granted"), ("limit_count", "limit"),
                                ("reclaim_threshold_count", "reclaim_threshold")):  # fmt: skip
            if (text := self.one(f"ldlm/lock_{parameter}")) is not None:
                yield f"lustre_ldlm_server_{name}_locks", {}, Decimal(text)

    def lock_file(self, sums: dict[tuple[str, str, str, str], int], namespace: str, parameter: str, file: Path) -> None:
        of_mount = self.naive.client(namespace)
        if of_mount is not None:
            group, wanted = (self.fs, of_mount["mount"], namespace.split("-")[2]), OF_CLIENT
        elif namespace == "MGS":
            group, wanted = ("", "", "mgs"), OF_SERVER
        elif namespace.startswith(("filter-", "mdt-")):
            group, wanted = (self.fs, "", "mdt" if namespace.startswith("mdt-") else "ost"), OF_SERVER
        elif re.search(r"MDT....-osp-MDT", namespace):
            group, wanted = (self.fs, "", "osp"), OF_CLIENT
        else:
            return
        if parameter in wanted:
            sums[(wanted[parameter], *group)] += int(file.read_text())
        elif parameter == "pool/stats" and wanted is OF_SERVER:
            for name, _, _, total in self.naive.counters(file.read_text()):
                if name in {"grant", "cancel"}:
                    sums[(f"pool_{name}s_total", *group)] += total

    def network(self) -> Iterator[Sample]:
        if (text := self.lnet("stats")) is not None:
            words = [Decimal(word) for word in text.split()]
            yield "lustre_lnet_allocated_messages", {}, words[0]
            yield "lustre_lnet_errors_total", {}, words[2]
            for i, event in enumerate(("sent", "received", "routed", "dropped")):
                yield "lustre_lnet_messages_total", {"event": event}, words[3 + i]
                yield "lustre_lnet_bytes_total", {"event": event}, words[7 + i]
        interfaces: dict[str, list[list[str]]] = defaultdict(list)
        for line in (self.lnet("nis") or "").splitlines()[1:]:
            interfaces[line.split()[0]].append(line.split())
        for nid, rows in interfaces.items():
            labels = {"nid": nid}
            yield "lustre_lnet_interface_up", labels, Decimal(all(row[1] == "up" for row in rows))
            yield "lustre_lnet_interface_peer_credits", labels, Decimal(rows[0][4])
            yield "lustre_lnet_interface_max_credits", labels, Decimal(sum(int(row[6]) for row in rows))
            yield "lustre_lnet_interface_credits", labels, Decimal(sum(int(row[7]) for row in rows))
        if (text := self.lnet("routes")) is not None:
            first, _, *rows = text.splitlines()
            yield "lustre_lnet_routing", {}, Decimal(first == "Routing enabled")
            for row in rows:
                net, _, _, state, router = row.split()
                yield "lustre_lnet_route_up", {"net": net, "nid": router}, Decimal(state == "up")
        sizes: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for line in (self.lnet("buffers") or "").splitlines()[1:]:
            pages, count, left, _ = line.split()
            sizes[pages].append((int(count), int(left)))
        for pages, parts in sizes.items():
            yield "lustre_lnet_router_buffers", {"pages": pages}, Decimal(sum(count for count, _ in parts))
            yield "lustre_lnet_router_buffer_credits", {"pages": pages}, Decimal(sum(left for _, left in parts))
        for line in (self.lnet("peers") or "").splitlines()[1:]:
            nid, _, state, _, most, router, _, left, _, queued = line.split()
            labels = {"nid": nid}
            if state in {"up", "down"}:
                yield "lustre_lnet_peer_up", labels, Decimal(state == "up")
            yield "lustre_lnet_peer_max_credits", labels, Decimal(most)
            yield "lustre_lnet_peer_router_credits", labels, Decimal(router)
            yield "lustre_lnet_peer_credits", labels, Decimal(left)
            yield "lustre_lnet_peer_queued_bytes", labels, Decimal(queued)

    def services(self) -> Iterator[Sample]:
        for folder in ("ost/OSS/*", "mds/MDS/*", "mgs/MGS/mgs", "ldlm/services/*"):
            for path, file in self.naive.places(f"{folder}/*").items():
                labels, parameter = {"service": path.split("/")[2]}, path.split("/")[3]
                if parameter == "stats":
                    yield from self.service(labels, file.read_text())
                elif parameter == "nrs_policies":
                    yield from self.queues(labels, file.read_text())
                elif parameter in {"threads_min", "threads_max", "threads_started"}:
                    yield f"lustre_service_{parameter}", labels, Decimal(file.read_text())

    def service(self, labels: Labels, text: str) -> Iterator[Sample]:
        prefix = "lustre_service"
        for name, samples, unit, total in self.naive.counters(text):
            if name == "req_waittime":
                yield f"{prefix}_requests_total", labels, Decimal(samples)
                yield f"{prefix}_request_wait_seconds_total", labels, Decimal(total).scaleb(-6)
            elif name == "req_qdepth":
                yield f"{prefix}_queue_depth_at_start_total", labels, Decimal(total)
            elif name == "req_active":
                yield f"{prefix}_active_at_start_total", labels, Decimal(total)
            elif name not in {"req_timeout", "reqbuf_avail", "reqbufs_avail"}:
                more = {**labels, "operation": name}
                yield f"{prefix}_operations_total", more, Decimal(samples)
                if unit.startswith("usec"):
                    yield f"{prefix}_operation_seconds_total", more, Decimal(total).scaleb(-6)

    @staticmethod
    def queues(labels: Labels, text: str) -> Iterator[Sample]:
        for section in re.split(r"\n(?=\w+_requests:)", text):
            match = re.match(r"\n?(regular|high)(?:_priority)?_requests:", section)
            if match is None:
                continue
            for word in ("queued", "active"):
                number = sum(int(found) for found in re.findall(rf"{word}: (\d+)", section))
                yield f"lustre_service_{word}_requests", {**labels, "priority": match[1]}, Decimal(number)

    def disks(self) -> Iterator[Sample]:
        for path, file in self.naive.places("osd-*/*/stats").items():
            labels = self.naive.server(path.split("/")[1])
            for name, samples, unit, total in self.naive.counters(file.read_text()) if labels else ():
                if name.startswith("cache_"):
                    plural = {"access": "accesses", "hit": "hits", "miss": "misses"}[name[6:]]
                    yield f"lustre_osd_cache_{plural}_total", labels, Decimal(total)
                    continue
                more = {**labels, "operation": name}
                yield "lustre_osd_operations_total", more, Decimal(samples)
                if unit.startswith("usec"):
                    yield "lustre_osd_operation_seconds_total", more, Decimal(total).scaleb(-6)
        for path, file in self.naive.places("osd-*/*/brw_stats").items():
            labels = self.naive.server(path.split("/")[1])
            for section in file.read_text().split("\n\n")[1:] if labels else ():
                yield from self.brw(labels, section)
        for path, file in self.naive.places("osd-*/*/nonrotational").items():
            if labels := self.naive.server(path.split("/")[1]):
                yield "lustre_osd_nonrotational", labels, Decimal(file.read_text())
        yield from self.scrubs()
        for kind, parameter in (("mdd", "namespace"), ("mdd", "layout"), ("obdfilter", "layout")):
            for device, text in self.naive.files(kind, f"lfsck_{parameter}"):
                yield from self.check({**self.naive.server(device), "kind": parameter}, text)

    def scrubs(self) -> Iterator[Sample]:
        for path, file in self.naive.places("osd-*/*/oi_scrub").items():
            labels = self.naive.server(path.split("/")[1])
            found = dict(line.split(":", 1) for line in file.read_text().splitlines())
            if not labels:
                continue
            yield "lustre_osd_scrub_state", {**labels, "state": found["status"].strip()}, Decimal(1)
            for flag in found["flags"].strip().split(",") if found["flags"] else ():
                yield "lustre_osd_scrub_flag", {**labels, "flag": flag}, Decimal(1)
            for key, name in SCRUB.items():
                if (value := found.get(key, "N/A").split()[0]) != "N/A":
                    yield f"lustre_osd_scrub_{name}", labels, Decimal(value)
            for key, name in (("updated", "repaired"), ("inconsistent", "inconsistent")):
                if key in found:
                    value = int(found[key]) + int(found[f"prior_{key}"])
                    yield f"lustre_osd_scrub_{name}_objects", labels, Decimal(value)

    @staticmethod
    def check(labels: Labels, text: str) -> Iterator[Sample]:
        found = dict(line.split(":", 1) for line in text.splitlines())
        yield "lustre_lfsck_state", {**labels, "state": found["status"].strip()}, Decimal(1)
        for flag in found["flags"].strip().split(",") if found["flags"] else ():
            yield "lustre_lfsck_flag", {**labels, "flag": flag}, Decimal(1)
        for key, name in LFSCK.items():
            if (value := found.get(key, "N/A").split()[0]) != "N/A":
                yield f"lustre_lfsck_{name}", labels, Decimal(value)
        for key, name in (("checked", "checked_items"), ("failed", "failed_items"), ("run_time", "run_seconds")):
            for phase in "12":
                value = found[f"{key}_phase{phase}"].split()[0]
                yield f"lustre_lfsck_{name}", {**labels, "phase": phase}, Decimal(value)
        dry = "dryrun" in found["param"]
        problems = {}
        for key, value in found.items():
            if key.startswith("repaired_") or (key.startswith("inconsistent_") and "phase" not in key):
                problems[key.split("_", 1)[1]] = int(value)
            if key.endswith(("_repaired", "_cleared", "_inconsistent", "_inconsistency")):
                problems[key.rsplit("_", 1)[0]] = int(value)
        for problem, number in problems.items():
            if number:
                yield "lustre_lfsck_problems", {**labels, "problem": problem}, Decimal(number)
        total = sum(problems.values())
        if labels["kind"] == "namespace":
            word = "inconsistent" if dry else "updated"
            total = int(found[f"{word}_phase1"]) + int(found[f"{word}_phase2"])
        yield f"lustre_lfsck_{'inconsistent' if dry else 'repaired'}_items", labels, Decimal(total)

    def brw(self, labels: Labels, section: str) -> Iterator[Sample]:
        _, heading, *lines = section.strip("\n").splitlines()
        name, unit = BRW[re.split(r"\s{2,}", heading)[0]]
        rows = []
        for line in lines:
            label, read, _, _, _, write, *_ = line.split()
            match = re.fullmatch(r"(\d+)([KMG]?):", label)
            assert match is not None
            rows.append((int(match[1]) * SCALE[match[2]], (int(read), int(write))))
        if not rows:
            return
        first = rows[0][0]
        if name in COUNTED_SINGLY:
            rows = [(missing, (0, 0)) for missing in range(1, first)] + rows
        else:
            smallest = 4096 if name == "io_size_bytes" else 1
            while smallest < rows[0][0]:
                rows.insert(0, (rows[0][0] // 2, (0, 0)))
        key = ("operation", ("lookup", "allocate")) if name == "block_map_seconds" else ("direction", ("read", "write"))
        for i, value in enumerate(key[1]):
            column = [(float(bound * unit), counts[i]) for bound, counts in rows]
            if name in COUNTED_SINGLY and column[-1][0] == 31:
                column[-1] = (float("inf"), column[-1][1])
            yield from self.naive.buckets(f"lustre_osd_{name}", {**labels, key[0]: value}, column)

    def latencies(self) -> Iterator[Sample]:
        for path, file in self.naive.places("osd-*/*/io_latency_stats").items():
            labels = self.naive.server(path.split("/")[1])
            for more, rows in latency_lines(file.read_text()) if labels else ():
                yield from self.latency("lustre_osd_io_latency_seconds", {**labels, **more}, rows)
        pools = self.naive.pools()
        sums: dict[tuple[tuple[str, str], ...], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for path, file in self.naive.places("osc/*/io_latency_stats").items():
            of = self.naive.client(path.split("/")[1])
            for more, rows in latency_lines(file.read_text()) if of else ():
                labels = {**more, "fs": of["fs"], "mount": of["mount"], "pool": ",".join(pools.get(of["target"], []))}
                if self.per_target:
                    yield from self.latency("lustre_osc_io_latency_seconds", {**labels, "target": of["target"]}, rows)
                for usec, count in rows.items():
                    sums[tuple(sorted(labels.items()))][usec] += count
        for labels_, rows in sums.items() if not self.per_target else ():
            yield from self.latency("lustre_osc_io_latency_seconds", dict(labels_), rows)

    def latency(self, name: str, labels: Labels, rows: dict[int, int]) -> Iterator[Sample]:
        bounds = [1 << power for power in range(max(rows).bit_length() + 1)]  # "512us" is more than 512 up to 1024
        column = [(round(bound * 1.024e-6, 12), rows.get(bound // 2, 0)) for bound in bounds]
        yield from self.naive.buckets(name, labels, column)

    def recovery(self) -> Iterator[Sample]:
        for kind, prefix in (("obdfilter", "lustre_ost"), ("mdt", "lustre_mdt")):
            yield from self.naive.numbers(kind, "eviction_count", f"{prefix}_evictions_total", self.naive.server)
            for device, text in self.naive.files(kind, "recovery_status"):
                labels = self.naive.server(device)
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

    def metadata(self) -> Iterator[Sample]:
        for parameter, name, factor in (("kbytestotal", "size_bytes", 1024), ("kbytesfree", "free_bytes", 1024),
                                        ("kbytesavail", "avail_bytes", 1024), ("filestotal", "files", 1),
                                        ("filesfree", "files_free", 1)):  # fmt: skip
            for path, file in self.naive.places(f"osd-*/*-MDT*/{parameter}").items():
                labels = self.naive.server(path.split("/")[1])
                yield f"lustre_mdt_{name}", labels, Decimal(int(file.read_text()) * factor)
        for parameter in ("dirty", "granted", "pending"):
            yield from self.naive.numbers("mdt", f"tot_{parameter}", f"lustre_mdt_{parameter}_bytes", self.naive.server)
        for device, text in self.naive.files("mdt", "rename_stats"):
            yield from self.renames(self.naive.server(device), text)
        yield from self.changelogs()
        yield from self.hsm()
        yield from self.osp()
        for parameter, name, divisor in LOD:
            for path, file in self.naive.places(f"lod/*/{parameter}").items():
                labels = {"fs": self.fs, "target": path.split("/")[1].split("-")[1]}
                yield f"lustre_lod_{name}", labels, Decimal(file.read_text().strip().rstrip("%")) / divisor

    def renames(self, labels: Labels, text: str) -> Iterator[Sample]:
        directory, rows = "", defaultdict(list)
        for line in text.splitlines():
            words = line.replace(",", "").split()
            if words[0] == "-":
                directory = words[1].rstrip(":")
            elif match := re.fullmatch(r"(\d+)(bytes|KB|MB):", words[0]):
                bound = int(match[1]) * {"bytes": 1, "KB": 1 << 10, "MB": 1 << 20}[match[2]]
                rows[directory].append((bound, int(words[3])))
        names = {"same_dir": "same", "crossdir_src": "source", "crossdir_tgt": "target"}
        for directory, column in rows.items():
            while column[0][0] > 4096:
                column.insert(0, (column[0][0] // 2, 0))
            more = {**labels, "directory": names[directory]}
            yield from self.naive.buckets("lustre_mdt_rename_directory_size_bytes", more, column)

    def changelogs(self) -> Iterator[Sample]:
        for device, text in self.naive.files("mdd", "changelog_users"):
            labels = self.naive.server(device)
            first, _, *users = text.splitlines()
            last = int(first.split(":")[1])
            yield "lustre_changelog_records_total", labels, Decimal(last)
            for line in users:
                name, index, *idle = line.split()
                more = {**labels, "user": name}
                yield "lustre_changelog_user_behind_records", more, Decimal(last - int(index))
                if idle and idle[0].startswith("("):
                    yield "lustre_changelog_user_idle_seconds", more, Decimal(idle[0].strip("()"))

    def hsm(self) -> Iterator[Sample]:
        for device, text in self.naive.files("mdt", "hsm_control"):
            yield "lustre_hsm_coordinator", {**self.naive.server(device), "state": text.strip()}, Decimal(1)
        for operation in ("archive", "restore", "remove"):
            for device, text in self.naive.files("mdt", f"hsm/{operation}_count"):
                yield "lustre_hsm_requests", {**self.naive.server(device), "operation": operation}, Decimal(text)
        for device, text in self.naive.files("mdt", "hsm/max_requests"):
            yield "lustre_hsm_max_requests", self.naive.server(device), Decimal(text)
        for device, text in self.naive.files("mdt", "hsm/agents"):
            labels = self.naive.server(device)
            yield "lustre_hsm_agents", labels, Decimal(len(text.splitlines()))
            for word, name, more in (
                ("current", "agent_requests", {}),
                ("ok", "agent_requests_done_total", {"result": "ok"}),
                ("errors", "agent_requests_done_total", {"result": "error"}),
            ):
                numbers = [int(number) for number in re.findall(rf"\b{word}:(\d+)", text)]
                if numbers or word == "current":
                    yield f"lustre_hsm_{name}", {**labels, **more}, Decimal(sum(numbers))

    def osp(self) -> Iterator[Sample]:
        pools = self.naive.pools()
        sums: dict[tuple[str, str, str], list[Decimal]] = defaultdict(list)
        for path in self.naive.places("osp/*-OST*-osc-MDT*/active"):
            device = path.split("/")[1]
            target, mdt = device.split("-")[1], device.split("-")[3]
            pool = ",".join(pools.get(target, []))
            numbers = {name: Decimal(text) for parameter, name in OSP.items()
                       if (text := self.one(f"osp/{device}/{parameter}")) is not None}  # fmt: skip
            ids = [self.one(f"osp/{device}/prealloc_{end}") for end in ("next_seq", "last_seq", "next_id", "last_id")]
            if ids[0] == ids[1] and ids[2] and ids[3]:
                numbers["precreated_objects"] = Decimal(int(ids[3]) - int(ids[2]) + 1)
            for name, value in numbers.items():
                labels = {"fs": self.fs, "target": target, "mdt": mdt}
                if name in {"active", "precreate_error"}:
                    if self.per_target or value != (1 if name == "active" else 0):
                        yield f"lustre_osp_{name}", labels, abs(value)
                elif self.per_target:
                    yield f"lustre_osp_{name}", {**labels, "pool": pool}, value
                else:
                    sums[name, mdt, pool].append(value)
        for (name, mdt, pool), values in sums.items():
            total = min(values) if name == "precreated_objects" else sum(values)
            yield f"lustre_osp_{name}", {"fs": self.fs, "mdt": mdt, "pool": pool}, Decimal(total)
        yield from self.between_servers(pools)

    def between_servers(self, pools: dict[str, list[str]]) -> Iterator[Sample]:
        links: list[tuple[Labels, Iterator[Sample]]] = []
        for device in {path.split("/")[1] for path in self.naive.places("osp/*/*")}:
            if match := re.fullmatch(r".*-(OST....|MDT....)-os[cp]-(MDT....)", device):
                labels = {"fs": self.fs, "mdt": match[2], "kind": match[1][:3], "target": match[1],
                          "pool": ",".join(pools.get(match[1], []))}  # fmt: skip
                links.append((labels, self.naive.link("osp", device, labels, plain=True)))
        if self.per_target:
            for _, samples in links:
                yield from samples
        else:
            yield from added_up(sample for _, samples in links for sample in samples)
        asking: list[Sample] = []
        for device in {path.split("/")[1] for path in self.naive.places("lwp/*/*")}:
            fs_and_mdt, _, owner = device.partition("-lwp-")
            labels = {"fs": self.fs, "mdt": fs_and_mdt[-7:], "target": owner}
            asking += self.naive.link("lwp", device, labels, plain=True)
        for name, labels, value in added_up(iter(asking)):
            yield name, {"target" if key == "mdt" else key: text for key, text in labels.items()}, value

    def clients(self) -> Iterator[Sample]:
        for kind, prefix in (("obdfilter", "lustre_ost_client"), ("mdt", "lustre_mdt_client")):
            for path, file in self.naive.places(f"{kind}/*/exports/*/stats").items():
                labels = {**self.naive.server(path.split("/")[1]), "nid": path.split("/")[3]}
                yield from self.naive.operations(prefix, labels, file.read_text())

    def quotas(self) -> Iterator[Sample]:
        types = {"usr": "user", "grp": "group", "prj": "project"}
        for path, file in self.naive.places("qmt/*/*/glb-*").items():
            resource, _, pool = path.split("/")[2].partition("-")
            what, unit = ("bytes", 1024) if resource == "dt" else ("files", 1)
            text = " ".join(file.read_text().split())
            for id_, hard, soft, granted, time in re.findall(
                r"- id: (\d+) limits: { hard: (\d+), soft: (\d+), granted: (\d+), time: (\d+) }", text
            ):
                labels = {"fs": self.fs, "pool": "" if pool == "0x0" else pool, "type": types[path[-3:]], "id": id_}
                if int(hard):
                    yield f"lustre_quota_hard_limit_{what}", labels, Decimal(int(hard) * unit)
                if int(soft):
                    yield f"lustre_quota_soft_limit_{what}", labels, Decimal(int(soft) * unit)
                if any(map(int, (hard, soft, granted))):
                    yield f"lustre_quota_granted_{what}", labels, Decimal(int(granted) * unit)
                    if id_ != "0" and 0 < int(time) < 1 << 48:
                        yield "lustre_quota_grace_end_timestamp_seconds", {**labels, "resource": what}, Decimal(time)
        for path, file in self.naive.places("osd-*/*/quota_slave*/acct_*").items():
            _, device, folder, name = path.split("/")
            labels = self.naive.server(device)
            if (folder == "quota_slave_dt" and "MDT" in device) or not labels or self.linked(path):
                continue
            text = " ".join(file.read_text().split())
            for id_, inodes, kilobytes in re.findall(r"- id: (\d+) usage: { inodes: (\d+), kbytes: (\d+) }", text):
                more = {**labels, "type": name.removeprefix("acct_"), "id": id_}
                yield "lustre_quota_used_files", more, Decimal(inodes)
                yield "lustre_quota_used_bytes", more, Decimal(int(kilobytes) * 1024)

    def slaves(self) -> Iterator[Sample]:
        for path, file in self.naive.places("osd-*/*/quota_slave*/info").items():
            labels = self.naive.server(path.split("/")[1])
            if not labels or self.linked(path):
                continue
            lines = [line.split(":", 1) for line in file.read_text().splitlines()]
            found = {key: value.strip() for key, value in lines}
            labels["resource"] = {"dt": "bytes", "md": "files"}[found["type"]]
            yield "lustre_quota_slave_connected", labels, Decimal(found["conn to master"] == "setup")
            for type_ in ("user", "group", "project"):
                more = {**labels, "type": type_}
                enforced = type_[0] in found["quota enabled"]
                yield "lustre_quota_slave_enforced", more, Decimal(enforced)
                if enforced and f"{type_} uptodate" in found:
                    copies = found[f"{type_} uptodate"]
                    yield "lustre_quota_slave_up_to_date", more, Decimal("glb[1],slv[1]" in copies)

    def linked(self, path: str) -> bool:
        """The folder is a link to another that is there too."""
        return any((self.naive.root / top / path).parent.is_symlink() for top in ("proc/fs/lustre", "sys/fs/lustre"))

    def nodemaps(self) -> Iterator[Sample]:
        if (text := self.one("nodemap/active")) is not None:
            yield "lustre_nodemap_active", {}, Decimal(text)
        for parameter, name in NODEMAP.items():
            for device, text in self.naive.files("nodemap", parameter):
                yield f"lustre_nodemap_{name}", {"nodemap": device}, Decimal(text)
        for parameter, prefix in (("dt_stats", "lustre_nodemap_ost"), ("md_stats", "lustre_nodemap_mdt")):
            for device, text in self.naive.files("nodemap", parameter):
                yield from self.naive.operations(prefix, {"nodemap": device}, text)

    def management(self) -> Iterator[Sample]:
        for path, file in self.naive.places("mgc/*/import").items():
            labels, text = {"nid": path.split("/")[1].removeprefix("MGC")}, file.read_text()
            for key, name, label in (("state", "imports", "state"), ("target_version", "targets", "version")):
                for value in re.findall(rf" {key}: (\S+)", text):
                    yield f"lustre_mgc_{name}", {**labels, label: value}, Decimal(1)
            for value in re.findall(r"connection_attempts: (\d+)", text):
                yield "lustre_mgc_import_connection_attempts_total", labels, Decimal(value)
        for path, file in self.naive.places("mgc/*/ir_state").items():
            labels = {"nid": path.split("/")[1].removeprefix("MGC")}
            yield "lustre_mgc_imperative_recovery", labels, Decimal("imperative_recovery: ENABLED" in file.read_text())
        if (text := self.one("mgs/MGS/eviction_count")) is not None:
            yield "lustre_mgs_evictions_total", {}, Decimal(text)
        if (text := self.one("mgs/MGS/num_exports")) is not None:
            yield "lustre_mgs_exports", {}, Decimal(text)
        for path, file in self.naive.places("mgs/MGS/live/*").items():
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


def latency_lines(text: str) -> Iterator[tuple[Labels, dict[int, int]]]:
    """Labels, and {time: count}, of each line."""
    for direction, size, pairs in re.findall(r"^(rd|wr)_(\d+)K: { (.*), }$", text, re.MULTILINE):
        rows = {int(pair.split("us: ")[0]): int(pair.split("us: ")[1]) for pair in pairs.split(", ")}
        yield {"direction": {"rd": "read", "wr": "write"}[direction], "size": str(int(size) * 1024)}, rows


def added_up(samples: Iterator[Sample]) -> Iterator[Sample]:
    """The same without the target; waits on average are the longest."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], list[Decimal]] = defaultdict(list)
    for name, labels, value in samples:
        found[name, frozenset(pair for pair in labels.items() if pair[0] != "target")].append(value)
    for (name, rest), values in found.items():
        yield name, dict(rest), max(values) if "average" in name else Decimal(sum(values))


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
SCRUB = {
    "time_since_last_completed": "since_completed_seconds",
    "time_since_latest_start": "since_start_seconds",
    "checked": "checked_objects",
    "failed": "failed_objects",
    "success_count": "completed_total",
    "run_time": "run_seconds",
}
LFSCK = {
    "last_completed_time": "completed_timestamp_seconds",
    "latest_start_time": "start_timestamp_seconds",
    "success_count": "completed_total",
}
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
RECOVERY = {
    "time_remaining": "remaining_seconds",
    "recovery_duration": "duration_seconds",
    "connected_clients": "connected_clients",
    "completed_clients": "completed_clients",
    "evicted_clients": "evicted_clients",
    "queued_requests": "queued_requests",
}
OSP = {
    "active": "active",
    "prealloc_status": "precreate_error",
    "prealloc_reserved": "reserved_objects",
    "sync_changes": "sync_changes",
    "sync_in_progress": "sync_in_progress_changes",
    "destroys_in_flight": "destroys_in_flight",
}
LOD = (
    ("numobd", "osts", 1),
    ("activeobd", "active_osts", 1),
    ("mdt_numobd", "mdts", 1),
    ("mdt_activeobd", "active_mdts", 1),
    ("stripesize", "stripe_size_bytes", 1),
    ("stripecount", "stripes", 1),
    ("qos_threshold_rr", "qos_threshold_ratio", 100),
    ("qos_prio_free", "qos_free_weight_ratio", 100),
)
NODEMAP = {
    "trusted_nodemap": "trusted",
    "admin_nodemap": "admin",
    "deny_unknown": "deny_unknown",
    "readonly_mount": "readonly_mount",
    "deny_mount": "deny_mount",
}
