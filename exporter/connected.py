"""A connection to one target, as families: the same for clients (osc, mdc) and for servers towards others (osp, lwp).

Requests and what they took (``stats``), and the state of the connection (``import``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from exporter.counters import Rule
from exporter.families import Counter, Family, Gauge, Histogram
from exporter.text_format import escape
from lustre.formats.import_ import Brief

Sample = tuple[Family, bytes, int]
"""A family, further label text, a value (microseconds where the family is in seconds)."""


@dataclass(frozen=True, slots=True, eq=False)
class ConnectionFamilies:
    """Families of one kind of connection, a server's to another server included."""

    rule: Rule
    imports: Gauge
    versions: Gauge
    attempts: Counter
    timeouts: Counter
    average_wait: Gauge

    def families(self) -> tuple[Family, ...]:
        """All of them."""
        return (*self.rule.families(), self.imports, self.versions, self.attempts, self.timeouts, self.average_wait)

    def import_gauges(self, link: Brief) -> Iterator[Sample]:
        """What is the case with the connection now."""
        if link.state is not None:
            yield self.imports, _label(b"state", link.state), 1
        if link.target_version is not None:
            yield self.versions, _label(b"version", link.target_version), 1
        if link.avg_waittime_usec is not None:
            yield self.average_wait, b"", link.avg_waittime_usec

    def import_counters(self, link: Brief) -> Iterator[tuple[Counter, bytes, int]]:
        """What has happened to it since the mount."""
        if link.connection_attempts is not None:
            yield self.attempts, b"", link.connection_attempts
        if link.timeouts is not None:
            yield self.timeouts, b"", link.timeouts


@lru_cache(maxsize=256)
def _label(name: bytes, value: bytes) -> bytes:
    return b',%b="%b"' % (name, escape(value))


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes families of one kind of client."""

    kind: str
    labels: tuple[str, ...]

    def counter(
        self, name: str, text: str, parameter: str, *more: str, unit: str = "", versions: str = "2.10+"
    ) -> Counter:
        """Called ``lustre_<kind>_<name>_total``."""
        labels = (*self.labels, *more)
        return Counter(f"lustre_{self.kind}_{name}_total", text, labels, self._of(parameter), unit, versions)

    def gauge(self, name: str, text: str, parameter: str, *more: str, unit: str = "", versions: str = "2.10+") -> Gauge:
        """Called ``lustre_<kind>_<name>``."""
        return Gauge(f"lustre_{self.kind}_{name}", text, (*self.labels, *more), self._of(parameter), unit, versions)

    def histogram(
        self, name: str, text: str, usual: tuple[float, ...], *more: str, unit: str = "", versions: str = "2.10+"
    ) -> Histogram:
        """Of ``rpc_stats``."""
        labels = (*self.labels, *more)
        return Histogram(f"lustre_{self.kind}_{name}", text, labels, self._of("rpc_stats"), unit, versions, usual)

    def _of(self, parameter: str) -> str:
        return f"{self.kind}.*.{parameter}"


def connection_families(
    kind: str, labels: tuple[str, ...], server: str, imports_since: str = "2.10+"
) -> ConnectionFamilies:
    """Families called ``lustre_<kind>_…``; ``server`` is what is at the other end (``object servers``)."""
    make = Maker(kind, labels)
    since = imports_since
    return ConnectionFamilies(
        rule=_rule(make, server),
        imports=make.gauge(
            "imports",
            f"Connections to {server}, by state. FULL is connected, IDLE is disconnected because unused.",
            "import",
            "state",
            versions=since,
        ),
        versions=make.gauge(
            "targets", "Connected targets, by the Lustre release of their server.", "import", "version", versions=since
        ),
        attempts=make.counter(
            "import_connection_attempts",
            f"Attempts to connect to {server}. More than one per target means reconnection.",
            "import",
            versions=since,
        ),
        timeouts=make.counter("import_timeouts", f"Requests to {server} that timed out.", "import", versions=since),
        average_wait=make.gauge(
            "import_average_wait_seconds",
            f"Mean reply time for requests to {server} since the mount. For several targets, the longest.",
            "import",
            unit="seconds",
            versions=since,
        ),
    )


def _rule(make: Maker, server: str) -> Rule:
    return Rule(
        operations=make.counter("operations", f"Requests to {server}, by operation.", "stats", "operation"),
        seconds=make.counter(
            "operation_seconds",
            f"Total time from sending requests to {server} until the reply, by operation.",
            "stats",
            "operation",
            unit="seconds",
        ),
        special={
            b"req_waittime": (
                make.counter("requests", f"Requests to {server} that received a reply, all operations.", "stats"),
                make.counter(
                    "request_wait_seconds",
                    f"Total time requests to {server} waited for the reply.",
                    "stats",
                    unit="seconds",
                ),
            ),
            b"req_active": (
                None,
                make.counter(
                    "requests_active_at_send",
                    f"Sum of the number of requests in flight to {server}, sampled at each send. Divide by"
                    f" lustre_{make.kind}_requests_total for the average.",
                    "stats",
                ),
            ),
            # servers' counters, which share the form
            b"req_qdepth": (None, None),
            b"req_timeout": (None, None),
            b"reqbuf_avail": (None, None),
        },
    )
