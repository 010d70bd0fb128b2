"""Families of connections: clients to targets (osc, mdc), and servers to other targets (osp, lwp).

Every connection has requests (``stats``) and a state (``import``). A client also has histograms of its RPCs
(``rpc_stats``), limits and grants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from exporter.counters import StatsRule
from exporter.exposition import SINGLE_VALUES, Counter, Family, Gauge, Histogram, doubling, escape
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

    @property
    def of_import(self) -> Mapping[str, Family]:
        """Families of the numbers of a connection, by the field of ``Import``."""
        return {
            "connection_attempts": self.attempts,
            "timeouts": self.timeouts,
            "avg_waittime_usec": self.average_wait,
        }

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


@dataclass(frozen=True, slots=True)
class FamilyMaker:
    """Makes families of one kind of client."""

    kind: str
    labels: tuple[str, ...]

    def counter(
        self, name: str, text: str, parameter: str, *more: str, versions: str = "2.10+"
    ) -> Counter:
        labels = (*self.labels, *more)
        return Counter(f"lustre_{self.kind}_{name}_total", text, labels, self._of(parameter), versions)

    def gauge(self, name: str, text: str, parameter: str, *more: str, versions: str = "2.10+") -> Gauge:
        return Gauge(f"lustre_{self.kind}_{name}", text, (*self.labels, *more), self._of(parameter), versions)

    def histogram(
        self, name: str, text: str, usual: tuple[float, ...], *more: str, versions: str = "2.10+"
    ) -> Histogram:
        labels = (*self.labels, *more)
        return Histogram(f"lustre_{self.kind}_{name}", text, labels, self._of("rpc_stats"), versions, usual)

    def _of(self, parameter: str) -> str:
        return f"{self.kind}.*.{parameter}"


def connection_families(
    kind: str, labels: tuple[str, ...], server: str, imports_since: str = "2.10+"
) -> ConnectionFamilies:
    """Families called ``lustre_<kind>_…``; ``server`` is the name of the other end (``object servers``)."""
    make = FamilyMaker(kind, labels)
    since = imports_since
    return ConnectionFamilies(
        rule=_rule(make, server),
        imports=make.gauge(
            "imports", f"Connections to {server}, by state. FULL is connected, IDLE is disconnected because unused.",
            "import", "state", versions=since),
        versions=make.gauge(
            "targets", "Connected targets, by the Lustre release of their server.", "import", "version", versions=since
        ),
        attempts=make.counter(
            "import_connection_attempts",
            f"Attempts to connect to {server}. More than one per target means reconnection.", "import", versions=since),
        timeouts=make.counter("import_timeouts", f"Requests to {server} that timed out.", "import", versions=since),
        average_wait=make.gauge(
            "import_average_wait_seconds",
            f"Mean reply time for requests to {server} since the mount. For several targets, the longest.", "import",
            versions=since),
    )


def _rule(make: FamilyMaker, server: str) -> StatsRule:
    return StatsRule(
        operations=make.counter("operations", f"Requests to {server}, by operation.", "stats", "operation"),
        seconds=make.counter(
            "operation_seconds", f"Total time from sending requests to {server} until the reply, by operation.",
            "stats", "operation"),
        special={
            b"req_waittime": (
                make.counter("requests", f"Requests to {server} that received a reply, all operations.", "stats"),
                make.counter("request_wait_seconds", f"Total time requests to {server} waited for the reply.", "stats"),
            ),
            b"req_active": (
                None,
                make.counter(
                    "requests_active_at_send",
                    f"Sum of the number of requests in flight to {server}, sampled at each send. Divide by"
                    f" lustre_{make.kind}_requests_total for the average.", "stats"),
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
    make = FamilyMaker(kind, labels)
    plain = connection_families(kind, labels, server)
    return ClientFamilies(
        rule=replace(plain.rule, byte_sums=_bytes(make, server)),
        imports=plain.imports,
        versions=plain.versions,
        attempts=plain.attempts,
        timeouts=plain.timeouts,
        average_wait=plain.average_wait,
        rpcs=_rpcs(make, server),
        limits=_limits(make),
    )


def _bytes(make: FamilyMaker, server: str) -> dict[bytes, Counter]:
    return {
        b"read_bytes": make.counter("read_bytes", f"Bytes read from {server}.", "stats"),
        b"write_bytes": make.counter("write_bytes", f"Bytes written to {server}.", "stats"),
    }


def _rpcs(make: FamilyMaker, server: str) -> RpcFamilies:
    stats = "rpc_stats"
    common = RpcFamilies(
        in_flight=make.gauge("rpcs_in_flight", f"Bulk RPCs to {server} in flight now.", stats, "direction"),
        pending_pages=make.gauge("pending_pages", f"Pages waiting for a bulk RPC to {server} now.", stats, "direction"),
        at_send=make.histogram(
            "rpcs_in_flight_at_send", f"Bulk RPCs to {server}, by the number in flight when each was sent.",
            SINGLE_VALUES, "direction"),
        pages=make.histogram(
            "pages_per_rpc", f"Bulk RPCs to {server}, by size in pages.", doubling(1, 4096), "direction"),
    )
    return _metadata_rpcs(make, common) if make.kind == "mdc" else _object_rpcs(make, common)


def _object_rpcs(make: FamilyMaker, common: RpcFamilies) -> RpcFamilies:
    return replace(
        common,
        direct_in_flight=make.gauge(
            "direct_io_rpcs_in_flight", "Bulk RPCs of direct I/O to object servers in flight now.", "rpc_stats",
            versions="2.17+"),
        latency=make.histogram(
            "rpc_latency_seconds", "Bulk RPCs to object servers, by time until the reply.",
            doubling(1, 1 << 24, LATENCY_UNIT_SECONDS), "direction", versions="2.17+"),
    )


def _metadata_rpcs(make: FamilyMaker, common: RpcFamilies) -> RpcFamilies:
    """Make the families of metadata clients, which have modifying requests, but no latencies and no direct I/O."""
    return replace(
        common,
        modify_in_flight=make.gauge("modify_rpcs_in_flight", "Modifying metadata RPCs in flight now.", "rpc_stats"),
        modify_at_send=make.histogram(
            "modify_rpcs_in_flight_at_send", "Modifying metadata RPCs, by the number in flight when each was sent.",
            SINGLE_VALUES),
    )


def _limits(make: FamilyMaker) -> dict[str, Gauge]:
    limits = {
        "max_rpcs_in_flight": make.gauge(
            "max_rpcs_in_flight", "Limit on RPCs in flight. For several targets, the sum of their limits.",
            "max_rpcs_in_flight"),
        "max_pages_per_rpc": make.gauge(
            "max_pages_per_rpc", "Limit on pages per RPC. For several targets, the lowest limit.", "max_pages_per_rpc"),
        "cur_grant_bytes": make.gauge(
            "grant_bytes", "Space granted by the servers to this client for cached writes.", "cur_grant_bytes"),
        "cur_lost_grant_bytes": make.gauge(
            "lost_grant_bytes",
            "Granted space that this client lost to writes smaller than a block and to truncated files.",
            "cur_lost_grant_bytes"),
    }
    if make.kind == "mdc":
        limits["max_mod_rpcs_in_flight"] = make.gauge(
            "max_modify_rpcs_in_flight", "Limit on modifying metadata RPCs in flight.", "max_mod_rpcs_in_flight")
    else:
        limits["cur_dirty_bytes"] = make.gauge(
            "dirty_bytes", "Data written by applications and not yet sent to the servers.", "cur_dirty_bytes")
    return limits
