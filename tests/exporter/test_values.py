"""What the exporter shows equals what the files say.

The reader below shares nothing with the exporter: it goes through the files line by line, with split and int, and says
what every sample must be. Slow and plain on purpose.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from exporter.collectors import COLLECTORS
from tests.exporter.naive_nodes import everything
from tests.exporter.written import NODES

Labels = dict[str, str]
Sample = tuple[str, Labels, Decimal]
INF = "+Inf"


class Naive:
    """All expected samples of a tree, given which mount point each client instance is."""

    def __init__(self, root: Path, mounts: dict[str, str], fs: str = "lustre") -> None:
        self.root = root
        self.mounts = mounts
        self.fs = fs

    # finding and reading

    def places(self, pattern: str) -> dict[str, Path]:
        """{path below lustre/: file}, the first of sysfs, debugfs, procfs that has it."""
        found: dict[str, Path] = {}
        for top in ("sys/fs/lustre", "sys/kernel/debug/lustre", "proc/fs/lustre"):
            for path in (self.root / top).glob(pattern):
                if path.is_file():
                    found.setdefault(str(path.relative_to(self.root / top)), path)
        return found

    def files(self, kind: str, name: str) -> Iterator[tuple[str, str]]:
        """(device, text) of a parameter."""
        for path, file in sorted(self.places(f"{kind}/*/{name}").items()):
            yield path.split("/")[1], file.read_text()

    def client(self, device: str) -> Labels | None:
        """Labels of a client's device; None when it is not one of a mount."""
        instance = device.rsplit("-", maxsplit=1)[-1]
        if instance not in self.mounts:
            return None
        labels = {"fs": self.fs, "mount": self.mounts[instance]}
        target = re.search(r"-((?:OST|MDT)[0-9a-f]{4})-", device)
        return labels if target is None else {**labels, "target": target[1]}

    def server(self, device: str) -> Labels | None:
        match = re.fullmatch(rf"{self.fs}-((?:OST|MDT)[0-9a-f]{{4}})", device)
        return {"fs": self.fs, "target": match[1]} if match else None

    def pools(self) -> dict[str, list[str]]:
        """{target: its pools}, from the clients' lists."""
        members: dict[str, set[str]] = defaultdict(set)
        listed = self.places("lov/*-clilov-*/pools/*") or self.places("lod/*/pools/*")
        for path, file in listed.items():
            for line in file.read_text().split():
                members[line.removeprefix(f"{self.fs}-").removesuffix("_UUID")].add(path.split("/")[-1])
        return {target: sorted(pools) for target, pools in members.items()}

    # forms

    @staticmethod
    def counters(text: str) -> Iterator[tuple[str, int, str, int | None]]:
        """(name, samples, unit, sum) of a stats file. Older releases say usec, and put spaces into names."""
        for line in text.splitlines():
            before, found, after = line.partition(" samples ")
            if found:
                name, samples = before.rsplit(maxsplit=1)
                unit, *numbers = after.split()
                unit = unit.strip("[]").replace("usecs", "usec").replace("usec", "usecs")
                name = name.strip().replace(" ", "_")
                yield OLDER.get(name, name), int(samples), unit, int(numbers[2]) if len(numbers) > 2 else None

    @staticmethod
    def tables(text: str) -> Iterator[tuple[str, list[tuple[int, list[int]]]]]:
        """(name, [(label, counts)]) of the tables of rpc_stats."""
        for section in text.split("\n\n")[1:]:
            lines = [line for line in section.splitlines() if line.strip()]
            while lines and "%" not in lines[0]:
                lines.pop(0)
            if not lines:
                continue
            rows = []
            for line in lines[1:]:
                if re.match(r"\d+:", line):
                    left, _, right = line.partition("|")
                    label, *rest = left.split()
                    rows.append((int(label.rstrip(":")), [int(rest[0])] + ([int(right.split()[0])] if right else [])))
            yield re.split(r"\s{2,}", lines[0])[0], rows

    @staticmethod
    def buckets(name: str, labels: Labels, rows: list[tuple[float, int]]) -> Iterator[Sample]:
        """Cumulative buckets of [(bound, count)], and empty ones up to where such tables usually end."""
        total = 0
        usual = USUAL.get(name.removeprefix("lustre_"), ())
        for bound, count in rows + [(bound, 0) for bound in usual if bound > rows[-1][0]]:
            total += count
            if bound != float("inf"):
                yield f"{name}_bucket", {**labels, "le": repr(float(bound))}, Decimal(total)
        yield f"{name}_bucket", {**labels, "le": INF}, Decimal(total)

    def operations(self, prefix: str, labels: Labels, text: str) -> Iterator[Sample]:
        counters = list(self.counters(text))
        names = {name for name, *_ in counters}
        for name, samples, unit, total in counters:
            if unit == "bytes":
                assert total is not None
                yield f"{prefix}_{name}_total", labels, Decimal(total)
                short = name.removesuffix("_bytes")
                if short not in names and short in {"read", "write"}:
                    yield f"{prefix}_operations_total", {**labels, "operation": short}, Decimal(samples)
            else:
                yield f"{prefix}_operations_total", {**labels, "operation": name}, Decimal(samples)
                if unit == "usecs":
                    assert total is not None
                    yield f"{prefix}_operation_seconds_total", {**labels, "operation": name}, Decimal(total).scaleb(-6)

    def room(self, prefix: str, kind: str, of: Callable[[str], Labels | None]) -> Iterator[Sample]:
        for parameter, name, factor in (
            ("kbytestotal", "size_bytes", 1024), ("kbytesfree", "free_bytes", 1024),
            ("kbytesavail", "avail_bytes", 1024), ("filestotal", "files", 1), ("filesfree", "files_free", 1),
        ):  # fmt: skip
            yield from self.numbers(kind, parameter, f"{prefix}_{name}", of, factor)

    def numbers(
        self, kind: str, parameter: str, name: str, of: Callable[[str], Labels | None], factor: int = 1
    ) -> Iterator[Sample]:
        for device, text in self.files(kind, parameter):
            if (labels := of(device)) is not None:
                yield name, labels, Decimal(int(text) * factor)

    # families

    def llite(self) -> Iterator[Sample]:
        for device, text in self.files("llite", "stats"):
            labels = self.client(device)
            assert labels is not None
            yield from self.operations("lustre_llite", labels, text)
        for device, text in self.files("llite", "read_ahead_stats"):
            labels = self.client(device)
            assert labels is not None
            for name, samples, _, total in self.counters(text):
                if name in {"hits", "misses"}:
                    yield f"lustre_llite_read_ahead_{name}_total", labels, Decimal(samples)
                    continue
                yield "lustre_llite_read_ahead_events_total", {**labels, "event": name}, Decimal(samples)
                if total is not None:
                    yield "lustre_llite_read_ahead_pages_total", {**labels, "event": name}, Decimal(total)
        for device, text in self.files("llite", "statahead_stats"):
            labels = self.client(device)
            assert labels is not None
            for line in text.splitlines():
                key, _, value = line.partition(": ")
                name, more = {
                    "statahead total": ("statahead_started", {}),
                    "statahead wrong": ("statahead_wrong", {}),
                    "agl total": ("statahead_async_glimpses", {}),
                    "list_total": ("statahead_patterns", {"pattern": "list"}),
                    "fname_total": ("statahead_patterns", {"pattern": "name"}),
                    "hit_total": ("statahead_hits", {}),
                    "miss_total": ("statahead_misses", {}),
                }[key]
                yield f"lustre_llite_{name}_total", {**labels, **more}, Decimal(int(value))
        yield from self.page_cache()
        for parameter, name, factor in (
            ("max_read_ahead_mb", "read_ahead_max_bytes", 1 << 20),
            ("max_read_ahead_per_file_mb", "read_ahead_max_file_bytes", 1 << 20),
            ("max_read_ahead_whole_mb", "read_ahead_max_whole_bytes", 1 << 20),
            ("statahead_max", "statahead_max_entries", 1),
            ("statahead_running_max", "statahead_max_running", 1),
            ("statahead_batch_max", "statahead_batch_max_entries", 1),
        ):
            yield from self.numbers("llite", parameter, f"lustre_llite_{name}", self.client, factor)
        yield from self.room("lustre_filesystem", "llite", self.client)

    def page_cache(self) -> Iterator[Sample]:
        for device, text in self.files("llite", "max_cached_mb"):
            labels = self.client(device)
            assert labels is not None
            for line in text.splitlines():
                key, _, value = line.partition(": ")
                if key in CACHE:
                    name, factor = CACHE[key]
                    yield name, labels, Decimal(int(value) * factor)
        for device, text in self.files("llite", "unstable_stats"):
            labels = self.client(device)
            assert labels is not None
            yield "lustre_llite_unstable_pages", labels, Decimal(text.split()[3])
            yield "lustre_llite_unstable_bytes", labels, Decimal(int(text.split()[5]) * 1024 * 1024)

    def extents(self) -> Iterator[Sample]:
        for device, text in self.files("llite", "extents_stats"):
            labels = self.client(device)
            assert labels is not None
            rows = [re.findall(r"[\w.]+", line) for line in text.splitlines() if re.search(r"\d[KMG] -", line)]
            scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
            for column, direction in ((2, "read"), (5, "write")):
                table = [(int(row[1][:-1]) * scale[row[1][-1]] - 1, int(row[column])) for row in rows]
                if table:
                    yield from self.buckets("lustre_llite_extent_size_bytes", {**labels, "direction": direction}, table)

    def link(  # noqa: PLR0912 - plain on purpose
        self, kind: str, device: str, labels: Labels, *, plain: bool = False
    ) -> Iterator[Sample]:
        """Everything of one osc or mdc; of an osp or lwp (``plain``) its requests and its state."""
        prefix = f"lustre_{kind}"

        def text(name: str) -> str:
            file = self.places(f"{kind}/{device}/{name}").get(f"{kind}/{device}/{name}")
            return file.read_text() if file else ""

        for name, samples, unit, total in self.counters(text("stats")):
            if name == "req_waittime":
                assert total is not None
                yield f"{prefix}_requests_total", labels, Decimal(samples)
                yield f"{prefix}_request_wait_seconds_total", labels, Decimal(total).scaleb(-6)
            elif name == "req_active":
                assert total is not None
                yield f"{prefix}_requests_active_at_send_total", labels, Decimal(total)
            elif name == "req_qdepth":  # how long a queue was, which is no operation
                continue
            elif unit == "bytes":
                assert total is not None
                yield f"{prefix}_{name}_total", labels, Decimal(total)
            else:
                yield f"{prefix}_operations_total", {**labels, "operation": name}, Decimal(samples)
                if unit == "usecs":
                    assert total is not None
                    yield f"{prefix}_operation_seconds_total", {**labels, "operation": name}, Decimal(total).scaleb(-6)
        yield from self.rpcs(prefix, labels, "" if plain else text("rpc_stats"))
        for line in text("import").splitlines():
            key, _, value = line.strip().partition(": ")
            if key == "state":
                yield f"{prefix}_imports", {**labels, "state": value}, Decimal(1)
            elif key == "target_version":
                yield f"{prefix}_targets", {**labels, "version": value}, Decimal(1)
            elif key in {"connection_attempts", "timeouts"}:
                yield f"{prefix}_import_{key}_total", labels, Decimal(int(value))
            elif key == "avg_waittime":
                yield f"{prefix}_import_average_wait_seconds", labels, Decimal(int(value.split()[0])).scaleb(-6)
        for parameter, name in LIMITS.items():
            if text(parameter) and not plain:
                yield f"{prefix}_{name}", labels, Decimal(int(text(parameter)))

    def rpcs(self, prefix: str, labels: Labels, text: str) -> Iterator[Sample]:
        for pattern, name, more in (
            (r"read RPCs in flight: +(\d+)", "rpcs_in_flight", {"direction": "read"}),
            (r"write RPCs in flight: +(\d+)", "rpcs_in_flight", {"direction": "write"}),
            (r"DIO RPCs in flight: +(\d+)", "direct_io_rpcs_in_flight", {}),
            (r"pending read pages: +(\d+)", "pending_pages", {"direction": "read"}),
            (r"pending write pages: +(\d+)", "pending_pages", {"direction": "write"}),
            (r"modify_RPCs_in_flight: +(\d+)", "modify_rpcs_in_flight", {}),
        ):
            if match := re.search(pattern, text):
                yield f"{prefix}_{name}", {**labels, **more}, Decimal(int(match[1]))
        for title, rows in self.tables(text):
            if not rows:
                continue
            width = len(rows[0][1])
            if title == "RPC latency (us)":
                while len(rows) > 1 and rows[-1][1] == [0, 0]:  # the kernel adds up wrongly and does not see the end
                    rows.pop()
                table = [(round((2 * label or 1) * 1.024e-6, 12), counts) for label, counts in rows]
                name = "rpc_latency_seconds"
            elif title == "rpcs in flight":
                table = [(float("inf") if label == 31 else label, counts) for label, counts in rows]
                name = "modify_rpcs_in_flight_at_send" if width == 1 else "rpcs_in_flight_at_send"
            elif title == "pages per rpc":
                table = [(float("inf") if label == 1 << 31 else label, counts) for label, counts in rows]
                name = title.replace(" ", "_")
            else:
                continue
            for i in range(width):
                more = {"direction": ("read", "write")[i]} if width == 2 else {}
                column = [(bound, counts[i]) for bound, counts in table]
                yield from self.buckets(f"{prefix}_{name}", {**labels, **more}, column)

    def mdc(self) -> Iterator[Sample]:
        for device in sorted({path.split("/")[1] for path in self.places("mdc/*/*")}):
            labels = self.client(device)
            assert labels is not None
            yield from self.link("mdc", device, labels)
        for kind in ("mdc", "lmv"):
            for device, text in self.files(kind, "md_stats"):
                labels = self.client(device)
                assert labels is not None
                for name, count, _, _ in self.counters(text):
                    yield f"lustre_{kind}_metadata_operations_total", {**labels, "operation": name}, Decimal(count)
        for device, text in self.files("mdc", "batch_stats"):
            labels = self.client(device)
            assert labels is not None
            rows = [(float(bound), int(count)) for bound, count in re.findall(r"^(\d+):\s+(\d+)", text, re.MULTILINE)]
            yield from self.buckets("lustre_mdc_operations_per_batch", labels, rows)

    def osc(self) -> Iterator[Sample]:
        """Per target, with its pools joined."""
        pools = self.pools()
        for device in sorted({path.split("/")[1] for path in self.places("osc/*/*")}):
            labels = self.client(device)
            if labels is not None:
                yield from self.link("osc", device, {**labels, "pool": ",".join(pools.get(labels["target"], []))})

    def osc_summed(self) -> Iterator[Sample]:
        """The same, added up by pool. Histograms are added bucket by bucket before they are made cumulative."""
        plain: dict[tuple[str, frozenset[tuple[str, str]]], list[Decimal]] = defaultdict(list)
        tables: dict[tuple[str, frozenset[tuple[str, str]]], dict[str, Decimal]]
        tables = defaultdict(lambda: defaultdict(Decimal))
        last: tuple[object, Decimal] = (None, Decimal(0))
        for name, labels, value in self.osc():
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

    def pool(self) -> Iterator[Sample]:
        pools = self.pools()
        room: dict[tuple[str, str], Decimal] = {}
        targets: set[str] = set()
        for kind in ("obdfilter", "osp", "osc"):  # who knows best comes last
            for name, labels, value in self.room("lustre_pool", kind, self.object_target):
                room[name, labels["target"]] = value
            found = {path.split("/")[1] for path in self.places(f"{kind}/*/*")}
            targets |= {labels["target"] for device in found if (labels := self.object_target(device))}
        sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        reporting = {target for _, target in room}
        of_target = [(name, target, value) for (name, target), value in room.items()]
        of_target += [("lustre_pool_targets", target, Decimal(1)) for target in targets]
        of_target += [("lustre_pool_targets_reporting", target, Decimal(target in reporting)) for target in targets]
        for name, target, value in of_target:
            for pool in pools.get(target, [""]):
                sums[name, pool] += value
        for (name, pool), value in sums.items():
            yield name, {"fs": self.fs, "pool": pool}, value
        for target in targets if self.places("mdt/*/*") else ():
            labels = {"fs": self.fs, "target": target, "pool": ",".join(pools.get(target, []))}
            yield "lustre_pool_target_info", labels, Decimal(1)
        yield from self.traffic(pools)
        yield from self.spill()

    def traffic(self, pools: dict[str, list[str]]) -> Iterator[Sample]:
        traffic: dict[tuple[str, frozenset[tuple[str, str]]], Decimal] = defaultdict(Decimal)
        for name, labels, value in self.osc():
            short = name.removeprefix("lustre_osc_")
            if short in TRAFFIC:
                for pool in pools.get(labels["target"], [""]):
                    kept = {key: text for key, text in labels.items() if key != "target"} | {"pool": pool}
                    traffic[f"lustre_pool_{short}", frozenset(kept.items())] += value
        for (name, kept_labels), value in traffic.items():
            yield name, dict(kept_labels), value

    def object_target(self, device: str) -> Labels | None:
        """Of an osc, osp or obdfilter."""
        match = re.fullmatch(rf"{self.fs}-(OST....)(-osc-.*)?", device)
        return {"target": match[1]} if match else None

    def spill(self) -> Iterator[Sample]:
        found: dict[tuple[str, str], list[int]] = defaultdict(list)
        for path, file in self.places("lod/*/pool/*/spill_*").items():
            pool, parameter = path.split("/")[-2:]
            if parameter in {"spill_is_active", "spill_threshold_pct", "spill_hit"}:
                found[parameter, pool].append(int(file.read_text()))
        for (parameter, pool), values in found.items():
            labels = {"fs": self.fs, "pool": pool}
            if parameter == "spill_is_active":
                yield "lustre_pool_spill_active", labels, Decimal(max(values))
            elif parameter == "spill_hit":
                yield "lustre_pool_spilled_files_total", labels, Decimal(sum(values))
            else:
                yield "lustre_pool_spill_threshold_ratio", labels, Decimal(max(values)) / 100

    def servers(self) -> Iterator[Sample]:
        for kind, prefix, parameter in (("obdfilter", "lustre_ost", "stats"), ("mdt", "lustre_mdt", "md_stats")):
            for device, text in self.files(kind, parameter):
                if (labels := self.server(device)) is not None:
                    yield from self.operations(prefix, labels, text)
            yield from self.numbers(kind, "num_exports", f"{prefix}_exports", self.server)
            yield from self.numbers(kind, "no_create", f"{prefix}_no_create", self.server)
            yield from self.numbers(kind, "readonly", f"{prefix}_readonly", self.server)
        yield from self.room("lustre_ost", "obdfilter", self.server)
        for parameter, name in (("degraded", "degraded"), ("tot_dirty", "dirty_bytes"),
                                ("tot_granted", "granted_bytes"), ("tot_pending", "pending_bytes")):  # fmt: skip
            yield from self.numbers("obdfilter", parameter, f"lustre_ost_{name}", self.server)

    def jobs(self) -> Iterator[Sample]:
        for kind in ("obdfilter", "mdt"):
            for device, text in self.files(kind, "job_stats"):
                labels = self.server(device)
                assert labels is not None
                blocks = text.split("\n- job_id:")[1:]
                yield "lustre_jobs", labels, Decimal(len(blocks))
                yield "lustre_jobs_idle", labels, Decimal(0)
                for block in blocks:
                    job, *lines = block.splitlines()
                    name = re.sub(r"\\x(..)", lambda code: chr(int(code[1], 16)), job.strip().strip('"'))
                    yield from self.job({**labels, "job": name}, lines)

    def job(self, labels: Labels, lines: list[str]) -> Iterator[Sample]:
        for line in lines:
            match = re.match(r" +(\w+): +\{ samples: +(\d+), unit: +(\w+)(?:, min.*?, sum: +(\d+))?", line)
            if match is None or match[2] == "0":
                continue
            name, count, unit, total = match[1], Decimal(int(match[2])), match[3], Decimal(int(match[4] or 0))
            if unit == "bytes":
                yield f"lustre_job_{name}_total", labels, total
                more = {**labels, "direction": name.removesuffix("_bytes")}
                hist = re.search(r"hist: \{ (.*) \} \}", line)
                if hist:
                    rows = [(_size(size), int(number)) for size, number in re.findall(r"(\w+): (\d+)", hist[1])]
                    yield from self.buckets("lustre_job_io_size_bytes", more, rows)
                    yield "lustre_job_io_size_bytes_sum", more, total
                    yield "lustre_job_io_size_bytes_count", more, count
                if not any("usecs" in other for other in lines):  # up to 2.13
                    yield "lustre_job_operations_total", {**labels, "operation": name.removesuffix("_bytes")}, count
            else:
                yield "lustre_job_operations_total", {**labels, "operation": name}, count
                if unit == "usecs":
                    yield "lustre_job_operation_seconds_total", {**labels, "operation": name}, total.scaleb(-6)


def _size(text: str) -> int:
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * scale[text[-1]] if text[-1] in scale else int(text)


CACHE = {
    "max_cached_mb": ("lustre_llite_page_cache_max_bytes", 1 << 20),
    "used_mb": ("lustre_llite_page_cache_used_bytes", 1 << 20),
    "unevict_mb": ("lustre_llite_page_cache_unevictable_bytes", 1 << 20),
    "reclaim_count": ("lustre_llite_page_cache_reclaims_total", 1),
    "used_read_ahead_mb": ("lustre_llite_read_ahead_used_bytes", 1 << 20),
}
LIMITS = {
    "max_rpcs_in_flight": "max_rpcs_in_flight",
    "max_mod_rpcs_in_flight": "max_modify_rpcs_in_flight",
    "max_pages_per_rpc": "max_pages_per_rpc",
    "cur_dirty_bytes": "dirty_bytes",
    "cur_grant_bytes": "grant_bytes",
    "cur_lost_grant_bytes": "lost_grant_bytes",
}
TRAFFIC = {"read_bytes_total", "write_bytes_total", "operations_total", "operation_seconds_total"}

USEC = Decimal("0.000001024")
USUAL: dict[str, Sequence[float]] = {
    **dict.fromkeys(
        ("osc_rpcs_in_flight_at_send", "mdc_rpcs_in_flight_at_send", "mdc_modify_rpcs_in_flight_at_send"),
        tuple(map(float, range(1, 31))),
    ),
    **dict.fromkeys(
        ("osc_pages_per_rpc", "mdc_pages_per_rpc", "osd_pages_per_bulk"), tuple(float(2**power) for power in range(13))
    ),
    **dict.fromkeys(
        ("osc_rpc_latency_seconds", "osc_io_latency_seconds", "osd_io_latency_seconds"),
        tuple(float(USEC * 2**power) for power in range(25)),
    ),
    "mdc_operations_per_batch": [1, 2, 4, 8, 16, 32, 64],
    "llite_extent_size_bytes": [4096 * 2**power - 1 for power in range(19)],
    **dict.fromkeys(
        ("osd_discontiguous_pages", "osd_discontiguous_blocks", "osd_io_fragments", "osd_io_in_flight"),
        tuple(map(float, range(1, 31))),
    ),
    "osd_io_seconds": [float(Decimal(2**power) / 1000) for power in range(15)],
    "osd_io_size_bytes": [4096.0 * 2**power for power in range(13)],
    "mdt_rename_directory_size_bytes": [4096.0 * 2**power for power in range(13)],
    "osd_block_map_seconds": [float(Decimal(2**power) / 1000) for power in range(11)],
}
"""Where the tables of a family end at least."""
OF_LIMITS = {"lustre_jobs_beyond_limit", "lustre_quota_ids_beyond_limit"}
"""Families that are there when jobs or quotas are limited; here they are not."""
OLDER = {"read-ahead_to_EOF": "readahead_to_eof", "hit_max_r-a_issue": "hit_max_readahead_issue"}
"""What 2.12 called them."""

Expected = dict[tuple[str, frozenset[tuple[str, str]]], Decimal]


def expected(samples: Iterator[Sample]) -> Expected:
    found: Expected = {}
    for name, labels, value in samples:
        key = name, frozenset(labels.items())
        assert key not in found, key
        found[key] = value
    return found


def everything_in(naive: Naive, *, per_target: bool = False) -> Expected:
    parts = (naive.llite, naive.extents, naive.mdc, naive.osc if per_target else naive.osc_summed, naive.pool,
             naive.servers, naive.jobs, lambda: everything(naive, per_target=per_target))  # fmt: skip
    return expected(sample for part in parts for sample in part())


def compare(naive: Naive, text: bytes, samples: Callable[[bytes], dict], *, per_target: bool = False) -> None:
    shown = {key: Decimal(value) for key, value in samples(text).items()}
    want = everything_in(naive, per_target=per_target)
    assert len(want) > 200
    assert shown == want


@pytest.mark.parametrize("name", ["tree-idle", "tree-load-1", "tree-load-2"])
@pytest.mark.parametrize("per_target", [False, True])
def test_every_sample_of_a_recorded_tree(capture, exporter, samples, name, per_target) -> None:
    root = capture(f"2.17.57/{name}")
    instances = {path.name.split("-")[-1]: "" for path in (root / "sys/fs/lustre/llite").iterdir()}
    running = exporter(root, osc_per_target=per_target, osp_per_target=per_target)
    compare(Naive(root, instances), running.scrape(), samples, per_target=per_target)
    assert running.skipped() == {}
    assert running.errors() == {}
    assert running.reasons() == {}


@pytest.mark.parametrize("name", ["noisy-create-1m", "control-slow-disk"])
def test_every_sample_of_two_mounts_and_again_some_seconds_later(snapshots, exporter, samples, tmp_path, name) -> None:
    tape = snapshots(name, 3, 20)
    mounts = {mount["llite"].split("-")[-1]: mount["path"] for mount in tape.about["mounts"].values()}
    link = tmp_path / "now"
    running = None
    for number in (3, 20):
        link.unlink(missing_ok=True)
        link.symlink_to(tape.snapshot(number))
        running = running or exporter(link)
        compare(Naive(tape.snapshot(number), mounts), running.scrape(), samples)


def test_the_reader_would_notice(capture, exporter, samples) -> None:
    root = capture("2.17.57/tree-load-1")
    text = exporter(root).scrape().replace(b"lustre_osc_requests_total", b"lustre_osc_request_total")
    instances = {path.name.split("-")[-1]: "" for path in (root / "sys/fs/lustre/llite").iterdir()}
    with pytest.raises(AssertionError):
        compare(Naive(root, instances), text, samples)


def written_node(written: Callable[[str, str], Path], release: str, role: str) -> Naive:
    return Naive(written(release, role), {"ffff9f0a8c3d1800": "/work"}, "work")


@pytest.mark.parametrize(("release", "role"), NODES)
def test_every_sample_of_a_written_node(written, exporter, samples, release, role) -> None:
    naive = written_node(written, release, role)
    shown = {key: Decimal(value) for key, value in samples(exporter(naive.root).scrape()).items()}
    want = everything_in(naive)
    assert len(want) > 20
    assert shown == want


def test_the_plain_reader_knows_every_family(capture, snapshots, written) -> None:
    trees = [written_node(written, release, role) for release, role in NODES]
    root = capture("2.17.57/tree-load-1")
    trees.append(Naive(root, {path.name.split("-")[-1]: "" for path in (root / "sys/fs/lustre/llite").iterdir()}))
    known = {name for naive in trees for name, _ in everything_in(naive)}
    known = {re.sub(r"_bucket$", "", name) for name in known}
    families = {family.name for collector in COLLECTORS for family in collector.families}
    assert families - known == OF_LIMITS
