"""A client's connection to one target, as families: the same for object clients (osc) and metadata clients (mdc).

Requests and what they took (``stats``), how they were sent (``rpc_stats``), the state of the connection (``import``),
and the limits and reserves of the client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exporter.counters import Rule
from exporter.families import Counter, Family, Gauge, Histogram, escape
from exporter.rpcs import RpcFamilies
from lustre.text.import_ import Brief

Sample = tuple[Family, bytes, int]
"""A family, further label text, a value (microseconds where the family is in seconds)."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkFamilies:
    """Families of one kind of client."""

    rule: Rule
    rpcs: RpcFamilies
    imports: Gauge
    versions: Gauge
    attempts: Counter
    timeouts: Counter
    average_wait: Gauge
    limits: Mapping[str, Gauge]
    """By the parameter that holds the number."""

    def families(self) -> tuple[Family, ...]:
        """All of them."""
        return (*self.rule.families(), *self.rpcs, self.imports, self.versions, self.attempts, self.timeouts,
                self.average_wait, *self.limits.values())  # fmt: skip

    def import_gauges(self, link: Brief) -> Iterator[Sample]:
        """What is the case with the connection now."""
        if link.state is not None:
            yield self.imports, b',state="%b"' % escape(link.state), 1
        if link.target_version is not None:
            yield self.versions, b',version="%b"' % escape(link.target_version), 1
        if link.avg_waittime_usec is not None:
            yield self.average_wait, b"", link.avg_waittime_usec

    def import_counters(self, link: Brief) -> Iterator[tuple[Counter, bytes, int]]:
        """What has happened to it since the mount."""
        if link.connection_attempts is not None:
            yield self.attempts, b"", link.connection_attempts
        if link.timeouts is not None:
            yield self.timeouts, b"", link.timeouts


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes families of one kind of client."""

    kind: str
    labels: tuple[str, ...]

    def counter(self, name: str, text: str, parameter: str, *more: str, unit: str = "") -> Counter:
        return Counter(f"lustre_{self.kind}_{name}_total", text, (*self.labels, *more), self._of(parameter), unit)

    def gauge(self, name: str, text: str, parameter: str, *more: str, unit: str = "", versions: str = "2.10+") -> Gauge:
        return Gauge(f"lustre_{self.kind}_{name}", text, (*self.labels, *more), self._of(parameter), unit, versions)

    def histogram(self, name: str, text: str, *more: str, unit: str = "", versions: str = "2.10+") -> Histogram:
        labels = (*self.labels, *more)
        return Histogram(f"lustre_{self.kind}_{name}", text, labels, self._of("rpc_stats"), unit, versions)

    def _of(self, parameter: str) -> str:
        return f"{self.kind}.*.{parameter}"


def link_families(kind: str, labels: tuple[str, ...], server: str) -> LinkFamilies:
    """Families called ``lustre_<kind>_…``; ``server`` is what is at the other end (``object servers``)."""
    make = _Maker(kind, labels)
    return LinkFamilies(
        rule=_rule(make, server),
        rpcs=_rpcs(make, server),
        imports=make.gauge(
            "imports", "Connections by state. FULL is connected, IDLE hung up for lack of use.", "import", "state"
        ),
        versions=make.gauge("targets", "Targets by the Lustre release of their server.", "import", "version"),
        attempts=make.counter(
            "import_connection_attempts", "Attempts to connect; more than one to a target is reconnecting.", "import"
        ),
        timeouts=make.counter("import_timeouts", "Requests that got no answer in time.", "import"),
        average_wait=make.gauge(
            "import_average_wait_seconds",
            "Mean time to an answer since the mount. Of several targets, the longest.",
            "import",
            unit="seconds",
        ),
        limits=_limits(make),
    )


def _rule(make: _Maker, server: str) -> Rule:
    return Rule(
        operations=make.counter("operations", f"Requests to {server}, by operation.", "stats", "operation"),
        seconds=make.counter(
            "operation_seconds",
            "Time from sending these requests to their answer, added up.",
            "stats",
            "operation",
            unit="seconds",
        ),
        byte_sums={
            b"read_bytes": make.counter("read_bytes", f"Bytes read from {server}.", "stats", unit="bytes"),
            b"write_bytes": make.counter("write_bytes", f"Bytes written to {server}.", "stats", unit="bytes"),
        },
        special={
            b"req_waittime": (
                make.counter("requests", f"Requests to {server} that were answered, of every kind.", "stats"),
                make.counter(
                    "request_wait_seconds", "Time requests waited for their answer, added up.", "stats", unit="seconds"
                ),
            ),
            b"req_active": (
                None,
                make.counter(
                    "requests_active_at_send",
                    "Requests under way whenever one was sent, added up: divided by the number of requests, how many"
                    " are under way on average.",
                    "stats",
                ),
            ),
            # servers' counters, which share the form
            b"req_qdepth": (None, None),
            b"req_timeout": (None, None),
            b"reqbuf_avail": (None, None),
        },
    )


def _rpcs(make: _Maker, server: str) -> RpcFamilies:
    stats = "rpc_stats"
    modifies = make.kind == "mdc"
    return RpcFamilies(
        in_flight=make.gauge("rpcs_in_flight", f"Bulk requests under way to {server} now.", stats, "direction"),
        pending_pages=make.gauge("pending_pages", "Pages that wait to be sent or fetched now.", stats, "direction"),
        direct_in_flight=make.gauge(
            "direct_io_rpcs_in_flight", "Bulk requests of direct I/O under way now.", stats, versions="2.17+"
        ),
        at_send=make.histogram(
            "rpcs_in_flight_at_send", "Bulk requests by how many were under way when they were sent.", "direction"
        ),
        pages=make.histogram("pages_per_rpc", "Bulk requests by their pages.", "direction"),
        latency=make.histogram(
            "rpc_latency_seconds",
            "Bulk requests by the time to their answer.",
            "direction",
            unit="seconds",
            versions="2.17+",
        ),
        modify_in_flight=make.gauge("modify_rpcs_in_flight", "Modifying requests under way now.", stats)
        if modifies
        else None,
        modify_at_send=make.histogram(
            "modify_rpcs_in_flight_at_send", "Modifying requests by how many were under way when they were sent."
        )
        if modifies
        else None,
    )


def _limits(make: _Maker) -> dict[str, Gauge]:
    limits = {
        "max_rpcs_in_flight": make.gauge(
            "max_rpcs_in_flight",
            "Most bulk requests under way at once. Of several targets, the sum.",
            "max_rpcs_in_flight",
        ),
        "max_pages_per_rpc": make.gauge(
            "max_pages_per_rpc", "Most pages in one request. Of several targets, the smallest.", "max_pages_per_rpc"
        ),
        "cur_grant_bytes": make.gauge(
            "grant_bytes", "Room the servers have promised this client.", "cur_grant_bytes", unit="bytes"
        ),
        "cur_lost_grant_bytes": make.gauge(
            "lost_grant_bytes",
            "Promised room lost to writes of less than a block.",
            "cur_lost_grant_bytes",
            unit="bytes",
        ),
    }
    if make.kind == "mdc":
        limits["max_mod_rpcs_in_flight"] = make.gauge(
            "max_modify_rpcs_in_flight", "Most modifying requests under way at once.", "max_mod_rpcs_in_flight"
        )
    else:
        limits["cur_dirty_bytes"] = make.gauge(
            "dirty_bytes", "Written by applications and not sent yet.", "cur_dirty_bytes", unit="bytes"
        )
    return limits
