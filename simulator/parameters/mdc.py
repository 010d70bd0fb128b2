"""What a mount shows about its MDTs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simulator.mdc import Mdc
from simulator.parameters.imports import MDT_CONNECT_FLAGS, import_file
from simulator.parameters.text import Clock, rows, stats_file

if TYPE_CHECKING:
    from simulator.cluster import Cluster

_NO_DATA = """
read RPCs in flight:  0
write RPCs in flight: 0
pending write pages:  0
pending read pages:   0
"""
_TABLES = (("pages per rpc  ", 1), ("rpcs in flight ", 1), ("offset         ", 0))


def files(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """All of mdc."""
    clock = Clock(cluster.epoch_ns, cluster.now)
    for client in cluster.clients:
        for mdc in client.mdcs:
            debugfs, sysfs = f"sys/kernel/debug/lustre/mdc/{mdc.name}", f"sys/fs/lustre/mdc/{mdc.name}"
            waited = mdc.stats["req_waittime"]
            yield f"proc/fs/lustre/mdc/{mdc.name}/md_stats", stats_file(clock, mdc.md_stats)
            yield f"{debugfs}/stats", stats_file(clock, mdc.stats)
            yield f"{debugfs}/rpc_stats", _rpc_stats(clock, mdc)
            yield (
                f"{debugfs}/import",
                import_file(
                    mdc.name, mdc.mdt.name, MDT_CONNECT_FLAGS, client.settings.nid, mdc.in_flight,
                    waited.total // max(waited.samples, 1), cluster.settings.version, health=mdc.mdt.health,
                ),
            )  # fmt: skip
            yield f"{sysfs}/max_rpcs_in_flight", f"{mdc.max_rpcs_in_flight}\n"
            yield f"{sysfs}/max_mod_rpcs_in_flight", f"{mdc.max_mod_rpcs_in_flight}\n"


def _rpc_stats(clock: Clock, mdc: Mdc) -> str:
    text = clock.header(mdc.stats.start_time, 25, ":")
    text += f"modify_RPCs_in_flight:  {mdc.modifying_in_flight}\n"
    text += "\n\t\t\tmodify\nrpcs in flight        rpcs   %% cum %%\n"
    for number, (count, share, sum_share) in rows((mdc.modifying,)):
        text += f"{number}:\t\t{count:10} {share:3} {sum_share:3}\n"
    text += _NO_DATA
    for title, label in _TABLES:
        text += f"\n\t\t\tread\t\t\twrite\n{title}       rpcs   %% cum %% |       rpcs   %% cum %%\n"
        text += f"{label}:\t\t{0:10} {0:3} {0:3}   | {0:10} {0:3} {0:3}\n"
    return text
