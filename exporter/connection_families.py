"""Families of connections: clients to targets (osc, mdc), and servers to other targets (osp, lwp).

Every connection has requests (``stats``) and a state (``import``). A client also has histograms of its RPCs
(``rpc_stats``), limits and grants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from exporter.counters import StatsRule
from exporter.exposition import SINGLE_VALUES, Counter, Family, Gauge, doubling, escape
from exporter.families import ALL_RELEASES, FamilyMaker
from exporter.rpc_stats import LATENCY_UNIT_SECONDS, RpcFamilies
from lustre.formats.import_ import Import

Sample = tuple[Family, bytes, int]
"""A family, further label text, and a value (in microseconds if the family is in seconds)."""


@dataclass(frozen=True, slots=True, eq=False)
class ConnectionFamilies:
    """Families of one kind of connection, from a client or from a server to another server."""

    rule: StatsRule
    imports: Gauge
    versions: Gauge
    attempts: Counter
    timeouts: Counter
    average_wait: Gauge

    def families(self) -> tuple[Family, ...]:
        return (*self.rule.families(), self.imports, self.versions, self.attempts, self.timeouts, self.average_wait)

    def import_gauges(self, link: Import) -> Iterator[Sample]:
        if link.state is not None:
            yield self.imports, _label(b"state", link.state), 1
        if link.target_version is not None:
            yield self.versions, _label(b"version", link.target_version), 1
        if link.avg_waittime_usec is not None:
            yield self.average_wait, b"", link.avg_waittime_usec

    def import_counters(self, link: Import) -> Iterator[tuple[Counter, bytes, int]]:
        if link.connection_attempts is not None:
            yield self.attempts, b"", link.connection_attempts
        if link.timeouts is not None:
            yield self.timeouts, b"", link.timeouts


@lru_cache(maxsize=256)
def _label(name: bytes, value: bytes) -> bytes:
    return b',%b="%b"' % (name, escape(value))


def connection_families(
    kind: str, labels: tuple[str, ...], server: str, imports_since: str = ALL_RELEASES
) -> ConnectionFamilies:
    """Families called ``lustre_<kind>_…``; ``server`` is the name of the other end (``object servers``)."""
    make = FamilyMaker(f"lustre_{kind}", labels, f"{kind}.*")
    link, since = make.of("import"), imports_since
    return ConnectionFamilies(
        rule=_rule(make.of("stats"), server),
        imports=link.gauge(
            "imports", f"Connections to {server}, by state. FULL is connected, IDLE is unused, "
            "DEACTIVATED is switched off or denied.",
            "state", versions=since),
        versions=link.gauge(
            "targets", "Connected targets, by the Lustre release of their server.", "version", versions=since),
        attempts=link.counter(
            "import_connection_attempts",
            f"Attempts to connect to {server}. More than one per target means reconnection.", versions=since),
        timeouts=link.counter("import_timeouts", f"Requests to {server} that timed out.", versions=since),
        average_wait=link.gauge(
            "import_average_wait_seconds",
            f"Mean reply time for requests to {server} since the mount. For several targets, the longest.",
            versions=since),
    )


def _rule(make: FamilyMaker, server: str) -> StatsRule:
    return StatsRule(
        operations=make.counter("operations", f"Requests to {server}, by operation.", "operation"),
        seconds=make.counter(
            "operation_seconds", f"Total time from sending requests to {server} until the reply, by operation.",
            "operation"),
        special={
            b"req_waittime": (
                make.counter("requests", f"Requests to {server} that received a reply, all operations."),
                make.counter("request_wait_seconds", f"Total time requests to {server} waited for the reply."),
            ),
            b"req_active": (
                None,
                make.counter(
                    "requests_active_at_send",
                    f"Sum of the number of requests in flight to {server}, sampled at each send. Divide by"
                    f" {make.prefix}_requests_total for the average."),
            ),
            # counters of servers, which use the same format
            b"req_qdepth": (None, None),
            b"req_timeout": (None, None),
            b"reqbuf_avail": (None, None),
        },
    )


@dataclass(frozen=True, slots=True, eq=False)
class ClientFamilies(ConnectionFamilies):
    """Families of one kind of client, which sends data and changes of files."""

    rpcs: RpcFamilies
    limits: Mapping[str, Gauge]
    """Gauges by the parameter that holds the number."""

    def families(self) -> tuple[Family, ...]:
        return (*self.rule.families(), *self.rpcs, self.imports, self.versions, self.attempts, self.timeouts,
                self.average_wait, *self.limits.values())  # fmt: skip


def client_families(kind: str, labels: tuple[str, ...], server: str) -> ClientFamilies:
    """Families called ``lustre_<kind>_…``; ``server`` is the name of the other end (``object servers``)."""
    make = FamilyMaker(f"lustre_{kind}", labels, f"{kind}.*")
    plain, stats = connection_families(kind, labels, server), make.of("stats")
    byte_sums = {
        b"read_bytes": stats.counter("read_bytes", f"Bytes read from {server}."),
        b"write_bytes": stats.counter("write_bytes", f"Bytes written to {server}."),
    }
    return ClientFamilies(
        rule=replace(plain.rule, byte_sums=byte_sums),
        imports=plain.imports,
        versions=plain.versions,
        attempts=plain.attempts,
        timeouts=plain.timeouts,
        average_wait=plain.average_wait,
        rpcs=_metadata_rpcs(make.of("rpc_stats")) if kind == "mdc" else _object_rpcs(make.of("rpc_stats")),
        limits=make.numbers(*LIMITS, MODIFY_LIMIT if kind == "mdc" else DIRTY),
    )


def _rpcs(make: FamilyMaker, server: str) -> RpcFamilies:
    return RpcFamilies(
        in_flight=make.gauge("rpcs_in_flight", f"Bulk RPCs to {server} in flight now.", "direction"),
        pending_pages=make.gauge("pending_pages", f"Pages waiting for a bulk RPC to {server} now.", "direction"),
        at_send=make.histogram(
            "rpcs_in_flight_at_send", f"Bulk RPCs to {server}, by the number in flight when each was sent.",
            SINGLE_VALUES, "direction"),
        pages=make.histogram(
            "pages_per_rpc", f"Bulk RPCs to {server}, by size in pages.", doubling(1, 4096), "direction"),
    )


def _object_rpcs(make: FamilyMaker) -> RpcFamilies:
    return replace(
        _rpcs(make, "object servers"),
        direct_in_flight=make.gauge(
            "direct_io_rpcs_in_flight", "Bulk RPCs of direct I/O to object servers in flight now.", versions="2.17+"),
        latency=make.histogram(
            "rpc_latency_seconds", "Bulk RPCs to object servers, by time until the reply.",
            doubling(1, 1 << 24, LATENCY_UNIT_SECONDS), "direction", versions="2.17+"),
    )


def _metadata_rpcs(make: FamilyMaker) -> RpcFamilies:
    """Make the families of metadata clients, which have modifying requests, but no latencies and no direct I/O."""
    return replace(
        _rpcs(make, "metadata servers"),
        modify_in_flight=make.gauge("modify_rpcs_in_flight", "Modifying metadata RPCs in flight now."),
        modify_at_send=make.histogram(
            "modify_rpcs_in_flight_at_send", "Modifying metadata RPCs, by the number in flight when each was sent.",
            SINGLE_VALUES),
    )


LIMITS = (
    ("max_rpcs_in_flight", "max_rpcs_in_flight",
     "Limit on RPCs in flight. For several targets, the sum of their limits."),
    ("max_pages_per_rpc", "max_pages_per_rpc", "Limit on pages per RPC. For several targets, the lowest limit."),
    ("cur_grant_bytes", "grant_bytes", "Space granted by the servers that is left for further cached writes."),
    ("cur_lost_grant_bytes", "lost_grant_bytes",
     "Granted space that this client lost to writes smaller than a block and to truncated files."),
)
MODIFY_LIMIT = (
    "max_mod_rpcs_in_flight", "max_modify_rpcs_in_flight", "Limit on modifying metadata RPCs in flight.")
DIRTY = ("cur_dirty_bytes", "dirty_bytes", "Data that applications have written and servers have not written yet.")
