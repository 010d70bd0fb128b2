"""What a mount shows about itself: calls, read-ahead, cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simulator.client import Client
from simulator.parameters.text import Clock, stats_file

if TYPE_CHECKING:
    from simulator.cluster import Cluster

_EXTENTS_OFF = "disabled\n write anything to this file to activate, then '0' or 'disable' to deactivate\n"
_STATAHEAD = ("statahead total", "statahead wrong", "agl total", "list_total", "fname_total", "hit_total", "miss_total")


def files(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """All of llite."""
    clock = Clock(cluster.epoch_ns, cluster.now)
    for client in cluster.clients:
        name = f"{cluster.settings.fsname}-{client.settings.instance}"
        debugfs, sysfs = f"sys/kernel/debug/lustre/llite/{name}", f"sys/fs/lustre/llite/{name}"
        yield f"{debugfs}/stats", stats_file(clock, client.stats)
        yield f"{debugfs}/read_ahead_stats", stats_file(clock, client.read_ahead.stats)
        yield f"{debugfs}/statahead_stats", _statahead(client)
        yield f"{debugfs}/extents_stats", _EXTENTS_OFF
        yield f"{debugfs}/max_cached_mb", _max_cached_mb(client)
        settings = client.settings.read_ahead
        yield f"{sysfs}/max_read_ahead_mb", f"{settings.max_mib}\n"
        yield f"{sysfs}/max_read_ahead_per_file_mb", f"{settings.max_per_file_mib}\n"
        yield f"{sysfs}/statahead_max", f"{client.settings.statahead.max_names}\n"


def _statahead(client: Client) -> str:
    counted = client.statahead
    values = (counted.total, counted.wrong, counted.agl_total, counted.list_total, counted.fname_total,
              counted.hit_total, counted.miss_total)  # fmt: skip
    return "".join(f"{name}: {value}\n" for name, value in zip(_STATAHEAD, values, strict=True))


def _max_cached_mb(client: Client) -> str:
    limit, used = client.cache.max_bytes >> 20, client.cache.used_bytes >> 20
    return (
        f"users: 10\nmax_cached_mb: {limit}\nused_mb: {used}\nunused_mb: {limit - used}\nunevict_mb: 0\n"
        f"reclaim_count: 0\nmax_read_ahead_mb: {client.settings.read_ahead.max_mib}\nused_read_ahead_mb: 0\n"
    )
