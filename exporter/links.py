"""A client's connection to one target, as families: the same for object clients (osc) and metadata clients (mdc).

Besides what every connection has, how requests were sent (``rpc_stats``), and the limits and reserves of the client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from exporter.bounds import SINGLE, doubling
from exporter.connected import ConnectionFamilies, Maker, connection_families
from exporter.families import Counter, Family, Gauge
from exporter.rpcs import LATENCY_UNIT_SECONDS, RpcFamilies


@dataclass(frozen=True, slots=True, eq=False)
class LinkFamilies(ConnectionFamilies):
    """Families of one kind of client: what it sends files' data and changes over."""

    rpcs: RpcFamilies
    limits: Mapping[str, Gauge]
    """By the parameter that holds the number."""

    def families(self) -> tuple[Family, ...]:
        """All of them."""
        return (*self.rule.families(), *self.rpcs, self.imports, self.versions, self.attempts, self.timeouts,
                self.average_wait, *self.limits.values())  # fmt: skip


def link_families(kind: str, labels: tuple[str, ...], server: str) -> LinkFamilies:
    """Families called ``lustre_<kind>_…``; ``server`` is what is at the other end (``object servers``)."""
    make = Maker(kind, labels)
    plain = connection_families(kind, labels, server)
    return LinkFamilies(
        rule=replace(plain.rule, byte_sums=_bytes(make, server)),
        imports=plain.imports,
        versions=plain.versions,
        attempts=plain.attempts,
        timeouts=plain.timeouts,
        average_wait=plain.average_wait,
        rpcs=_rpcs(make, server),
        limits=_limits(make),
    )


def _bytes(make: Maker, server: str) -> dict[bytes, Counter]:
    return {
        b"read_bytes": make.counter("read_bytes", f"Bytes read from {server}.", "stats", unit="bytes"),
        b"write_bytes": make.counter("write_bytes", f"Bytes written to {server}.", "stats", unit="bytes"),
    }


def _rpcs(make: Maker, server: str) -> RpcFamilies:
    stats = "rpc_stats"
    common = RpcFamilies(
        in_flight=make.gauge("rpcs_in_flight", f"Bulk RPCs to {server} in flight now.", stats, "direction"),
        pending_pages=make.gauge("pending_pages", f"Pages waiting for a bulk RPC to {server} now.", stats, "direction"),
        at_send=make.histogram(
            "rpcs_in_flight_at_send",
            f"Bulk RPCs to {server}, by the number in flight when each was sent.",
            SINGLE,
            "direction",
        ),
        pages=make.histogram(
            "pages_per_rpc", f"Bulk RPCs to {server}, by size in pages.", doubling(1, 4096), "direction"
        ),
    )
    return _metadata_rpcs(make, common) if make.kind == "mdc" else _object_rpcs(make, common)


def _object_rpcs(make: Maker, common: RpcFamilies) -> RpcFamilies:
    return replace(
        common,
        direct_in_flight=make.gauge(
            "direct_io_rpcs_in_flight",
            "Bulk RPCs of direct I/O to object servers in flight now.",
            "rpc_stats",
            versions="2.17+",
        ),
        latency=make.histogram(
            "rpc_latency_seconds",
            "Bulk RPCs to object servers, by time until the reply.",
            doubling(1, 1 << 24, LATENCY_UNIT_SECONDS),
            "direction",
            unit="seconds",
            versions="2.17+",
        ),
    )


def _metadata_rpcs(make: Maker, common: RpcFamilies) -> RpcFamilies:
    """Of these Lustre shows no latencies and no direct I/O, but modifying requests, which are few at a time."""
    return replace(
        common,
        modify_in_flight=make.gauge("modify_rpcs_in_flight", "Modifying metadata RPCs in flight now.", "rpc_stats"),
        modify_at_send=make.histogram(
            "modify_rpcs_in_flight_at_send",
            "Modifying metadata RPCs, by the number in flight when each was sent.",
            SINGLE,
        ),
    )


def _limits(make: Maker) -> dict[str, Gauge]:
    limits = {
        "max_rpcs_in_flight": make.gauge(
            "max_rpcs_in_flight",
            "Limit on RPCs in flight. For several targets, the sum of their limits.",
            "max_rpcs_in_flight",
        ),
        "max_pages_per_rpc": make.gauge(
            "max_pages_per_rpc", "Limit on pages per RPC. For several targets, the lowest limit.", "max_pages_per_rpc"
        ),
        "cur_grant_bytes": make.gauge(
            "grant_bytes",
            "Space granted by the servers to this client for cached writes.",
            "cur_grant_bytes",
            unit="bytes",
        ),
        "cur_lost_grant_bytes": make.gauge(
            "lost_grant_bytes",
            "Granted space that this client lost to writes smaller than a block and to truncated files.",
            "cur_lost_grant_bytes",
            unit="bytes",
        ),
    }
    if make.kind == "mdc":
        limits["max_mod_rpcs_in_flight"] = make.gauge(
            "max_modify_rpcs_in_flight", "Limit on modifying metadata RPCs in flight.", "max_mod_rpcs_in_flight"
        )
    else:
        limits["cur_dirty_bytes"] = make.gauge(
            "dirty_bytes",
            "Data written by applications and not yet sent to the servers.",
            "cur_dirty_bytes",
            unit="bytes",
        )
    return limits
