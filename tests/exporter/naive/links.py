"""What a client device says of its requests, its connection and its limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Labels, Sample, buckets, counters, tables
from tests.exporter.naive.reader import Reader

LIMITS = {
    "max_rpcs_in_flight": "max_rpcs_in_flight",
    "max_mod_rpcs_in_flight": "max_modify_rpcs_in_flight",
    "max_pages_per_rpc": "max_pages_per_rpc",
    "cur_dirty_bytes": "dirty_bytes",
    "cur_grant_bytes": "grant_bytes",
    "cur_lost_grant_bytes": "lost_grant_bytes",
}


def link(  # noqa: PLR0912 - plain on purpose
    reader: Reader, kind: str, device: str, labels: Labels, *, plain: bool = False
) -> Iterator[Sample]:
    """Everything of one osc or mdc; of an osp or lwp (``plain``) its requests and its state."""
    prefix = f"lustre_{kind}"

    def text(name: str) -> str:
        file = reader.places(f"{kind}/{device}/{name}").get(f"{kind}/{device}/{name}")
        return file.read_text() if file else ""

    for name, samples, unit, total in counters(text("stats")):
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
    yield from rpcs(prefix, labels, "" if plain else text("rpc_stats"))
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


def rpcs(prefix: str, labels: Labels, text: str) -> Iterator[Sample]:
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
    for title, rows in tables(text):
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
            yield from buckets(f"{prefix}_{name}", {**labels, **more}, column)
