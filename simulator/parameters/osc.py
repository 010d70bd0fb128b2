"""What a mount shows about its OSTs: requests, sizes of RPCs, how long they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simulator.client import Client
from simulator.osc import Osc
from simulator.parameters.imports import OST_CONNECT_FLAGS, import_file, state_file
from simulator.parameters.text import Clock, rows, stats_file, two_columns
from simulator.tally import Histogram

if TYPE_CHECKING:
    from simulator.cluster import Cluster


def files(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """All of osc."""
    clock = Clock(cluster.epoch_ns, cluster.now)
    for client in cluster.clients:
        for osc in client.oscs:
            debugfs, sysfs = f"sys/kernel/debug/lustre/osc/{osc.name}", f"sys/fs/lustre/osc/{osc.name}"
            yield f"{debugfs}/stats", stats_file(clock, osc.stats)
            yield f"{debugfs}/rpc_stats", _rpc_stats(clock, osc)
            yield f"{debugfs}/import", _import(cluster, client, osc)
            yield f"{debugfs}/state", state_file(clock, client.mounted_at, osc.ost.health)
            yield f"{sysfs}/cur_dirty_bytes", f"{osc.dirty_bytes}\n"
            yield f"{sysfs}/cur_grant_bytes", "8437760\n"
            yield f"{sysfs}/max_rpcs_in_flight", f"{osc.settings.max_rpcs_in_flight}\n"
            yield f"{sysfs}/max_pages_per_rpc", f"{osc.settings.max_pages_per_rpc}\n"


def _import(cluster: Cluster, client: Client, osc: Osc) -> str:
    waited = osc.stats["req_waittime"]
    writes, sizes = osc.stats["ost_write"], osc.stats["write_bytes"]
    averages = ""
    if writes.samples:
        size, usecs = sizes.total // max(sizes.samples, 1), max(writes.total // writes.samples, 1)
        averages = (
            f"    write_data_averages:\n       bytes_per_rpc: {size}\n       usecs_per_rpc: {usecs}\n"
            f"       MB_per_sec: {size / usecs:.2f}\n"
        )
    return import_file(
        osc.name, osc.ost.name, OST_CONNECT_FLAGS, client.settings.nid, sum(osc.in_flight),
        waited.total // max(waited.samples, 1), cluster.settings.version, health=osc.ost.health,
    ) + averages  # fmt: skip


def _rpc_stats(clock: Clock, osc: Osc) -> str:
    reads, writes = osc.histograms
    waiting = osc.pages_waiting
    text = clock.header(osc.stats.start_time, 25, ":")
    text += f"read RPCs in flight:  {osc.in_flight[0]}\nwrite RPCs in flight: {osc.in_flight[1]}\n"
    text += f"DIO RPCs in flight: {osc.direct_in_flight}\n"
    text += f"pending write pages:  {waiting[1]}\npending read pages:   {waiting[0]}\n"
    text += _table("pages per rpc         rpcs", (reads.pages, writes.pages), shift=0)
    text += _table("rpcs in flight        rpcs", (reads.in_flight, writes.in_flight), shift=None)
    text += _table("offset                rpcs", (reads.offset, writes.offset), shift=1)
    return text + _latencies((reads.latency, writes.latency))


def _table(title: str, sides: tuple[Histogram, Histogram], *, shift: int | None) -> str:
    """One table; its labels are the bucket's number, or two to the power of it less ``shift``."""
    text = f"\n\t\t\tread\t\t\twrite\n{title}   % cum % |       rpcs   % cum %\n"
    for number, cells in rows(sides, first=1 if shift is None else 0):
        text += two_columns(number if shift is None else (1 << number) >> shift, cells)
    return text


def _latencies(sides: tuple[Histogram, Histogram]) -> str:
    text = "\n\t\t\tread\t\t\twrite\nRPC latency (us)       count   % cum % |       count   % cum %\n"
    return text + "".join(two_columns((1 << number) >> 1, cells) for number, cells in rows(sides))
