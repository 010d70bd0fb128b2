"""Makes the families of one subsystem, which share the beginning of their names, their labels and their source."""

from __future__ import annotations

from dataclasses import dataclass, replace

from exporter.counters import StatsRule
from exporter.exposition import Counter, Gauge, Histogram

ALL_RELEASES = "2.10+"


@dataclass(frozen=True, slots=True)
class FamilyMaker:
    """Makes the families of one parameter, or of the parameters in one folder. ``more`` are further labels."""

    prefix: str
    """Beginning of the names: ``lustre_osc``."""
    labels: tuple[str, ...]
    source: str
    """The parameter, or the folder: ``osc.*``."""

    def of(self, parameter: str) -> FamilyMaker:
        """Makes the families of one parameter in the folder."""
        return replace(self, source=f"{self.source}.{parameter}")

    def gauge(self, name: str, text: str, *more: str, versions: str = ALL_RELEASES) -> Gauge:
        return Gauge(f"{self.prefix}_{name}", text, (*self.labels, *more), self.source, versions)

    def counter(self, name: str, text: str, *more: str, versions: str = ALL_RELEASES) -> Counter:
        return Counter(f"{self.prefix}_{name}_total", text, (*self.labels, *more), self.source, versions)

    def histogram(
        self, name: str, text: str, usual: tuple[float, ...], *more: str, versions: str = ALL_RELEASES
    ) -> Histogram:
        return Histogram(f"{self.prefix}_{name}", text, (*self.labels, *more), self.source, versions, usual)

    def numbers(self, *rows: tuple[str, ...]) -> dict[str, Gauge]:
        """Gauges of parameters with one number: parameter, name, help, and the releases that have it, if not all."""
        return {parameter: self.of(parameter).gauge(name, text, versions=versions[0] if versions else ALL_RELEASES)
                for parameter, name, text, *versions in rows}

    def traffic(self, operations: str, seconds: str, read: str, written: str, *, versions: str = ALL_RELEASES,
                timed_since: str = "", bytes_since: str = "") -> StatsRule:
        """The rule of a parameter that counts operations, their time, and bytes; the texts are the four helps."""
        return StatsRule(
            self.counter("operations", operations, "operation", versions=versions),
            self.counter("operation_seconds", seconds, "operation", versions=timed_since or versions),
            {
                b"read_bytes": self.counter("read_bytes", read, versions=bytes_since or versions),
                b"write_bytes": self.counter("write_bytes", written, versions=bytes_since or versions),
            },
            implied={b"read_bytes": b"read", b"write_bytes": b"write"},
        )
