"""Forms that many files have: counters, tables of requests, buckets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal

Labels = dict[str, str]
Sample = tuple[str, Labels, Decimal]
INF = "+Inf"
SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
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
OLDER = {"read-ahead_to_EOF": "readahead_to_eof", "hit_max_r-a_issue": "hit_max_readahead_issue"}
"""What 2.12 called them."""


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


def buckets(name: str, labels: Labels, rows: list[tuple[float, int]]) -> Iterator[Sample]:
    """Cumulative buckets of [(bound, count)], and empty ones up to where such tables usually end."""
    total = 0
    usual = USUAL.get(name.removeprefix("lustre_"), ())
    for bound, count in rows + [(bound, 0) for bound in usual if bound > rows[-1][0]]:
        total += count
        if bound != float("inf"):
            yield f"{name}_bucket", {**labels, "le": repr(float(bound))}, Decimal(total)
    yield f"{name}_bucket", {**labels, "le": INF}, Decimal(total)


def added_up(samples: Iterator[Sample]) -> Iterator[Sample]:
    """The same without the target; waits on average are the longest."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], list[Decimal]] = defaultdict(list)
    for name, labels, value in samples:
        found[name, frozenset(pair for pair in labels.items() if pair[0] != "target")].append(value)
    for (name, rest), values in found.items():
        yield name, dict(rest), max(values) if "average" in name else Decimal(sum(values))
