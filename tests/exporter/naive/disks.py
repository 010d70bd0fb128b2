"""What lies below targets: operations, tables of disk I/O, how long it took."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import SCALE, Labels, Sample, buckets, counters
from tests.exporter.naive.reader import Reader

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


def disks(reader: Reader) -> Iterator[Sample]:
    for path, file in reader.places("osd-*/*/stats").items():
        labels = reader.server(path.split("/")[1])
        for name, samples, unit, total in counters(file.read_text()) if labels else ():
            if name.startswith("cache_"):
                plural = {"access": "accesses", "hit": "hits", "miss": "misses"}[name[6:]]
                yield f"lustre_osd_cache_{plural}_total", labels, Decimal(total)
                continue
            more = {**labels, "operation": name}
            yield "lustre_osd_operations_total", more, Decimal(samples)
            if unit.startswith("usec"):
                yield "lustre_osd_operation_seconds_total", more, Decimal(total).scaleb(-6)
    for path, file in reader.places("osd-*/*/brw_stats").items():
        labels = reader.server(path.split("/")[1])
        for section in file.read_text().split("\n\n")[1:] if labels else ():
            yield from brw(labels, section)
    for path, file in reader.places("osd-*/*/nonrotational").items():
        if labels := reader.server(path.split("/")[1]):
            yield "lustre_osd_nonrotational", labels, Decimal(file.read_text())


def brw(labels: Labels, section: str) -> Iterator[Sample]:
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
        yield from buckets(f"lustre_osd_{name}", {**labels, key[0]: value}, column)


def latencies(reader: Reader, *, per_target: bool) -> Iterator[Sample]:
    for path, file in reader.places("osd-*/*/io_latency_stats").items():
        labels = reader.server(path.split("/")[1])
        for more, rows in latency_lines(file.read_text()) if labels else ():
            yield from latency("lustre_osd_io_latency_seconds", {**labels, **more}, rows)
    pools = reader.pools()
    sums: dict[tuple[tuple[str, str], ...], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for path, file in reader.places("osc/*/io_latency_stats").items():
        of = reader.client(path.split("/")[1])
        for more, rows in latency_lines(file.read_text()) if of else ():
            labels = {**more, "fs": of["fs"], "mount": of["mount"], "pool": ",".join(pools.get(of["target"], []))}
            if per_target:
                yield from latency("lustre_osc_io_latency_seconds", {**labels, "target": of["target"]}, rows)
            for usec, count in rows.items():
                sums[tuple(sorted(labels.items()))][usec] += count
    for labels_, rows in sums.items() if not per_target else ():
        yield from latency("lustre_osc_io_latency_seconds", dict(labels_), rows)


def latency(name: str, labels: Labels, rows: dict[int, int]) -> Iterator[Sample]:
    bounds = [1 << power for power in range(max(rows).bit_length() + 1)]  # "512us" is more than 512 up to 1024
    column = [(round(bound * 1.024e-6, 12), rows.get(bound // 2, 0)) for bound in bounds]
    yield from buckets(name, labels, column)


def latency_lines(text: str) -> Iterator[tuple[Labels, dict[int, int]]]:
    """Labels, and {time: count}, of each line."""
    for direction, size, pairs in re.findall(r"^(rd|wr)_(\d+)K: { (.*), }$", text, re.MULTILINE):
        rows = {int(pair.split("us: ")[0]): int(pair.split("us: ")[1]) for pair in pairs.split(", ")}
        yield {"direction": {"rd": "read", "wr": "write"}[direction], "size": str(int(size) * 1024)}, rows
