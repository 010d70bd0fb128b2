"""Events of a scenario: changes to a running cluster, with their times.

Kinds, with their keys besides ``at``: ``slow`` (target, factor), ``degraded`` (target, rebuild_share),
``healthy`` (target), ``full`` (target, free_percent), ``gone`` (target), ``recovery`` (target, seconds), ``failover``
(target, seconds: away, then in recovery for as long), ``changelog_deregistered`` (target, user),
``changelog_registered`` and ``changelog_gap`` (target), ``changelog_mask`` (target, without: ``CLOSE``),
``changelog_late`` (target, every, seconds: one record of so many is written so much later than those after it),
``files`` (directory, target, files, size_bytes, idle_days), ``no_new_objects`` (target), ``drain_target`` (target: an
order to tierd, of which a cluster knows nothing),
``exporter_unreachable`` (seconds), ``clock_jump`` (seconds), ``mover`` (directory, pool, files), ``resync`` (path),
``job`` (job, and ``set``: fields with new values), ``stop`` (job).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simulator import faults
from simulator.settings import ExporterLoad

if TYPE_CHECKING:
    from simulator.cluster import Cluster

DRAIN_TARGET = "drain_target"
_Apply = Callable[["Cluster", "Event"], None]
KINDS: Mapping[str, tuple[_Apply, frozenset[str]]] = {
    "slow": (
        lambda c, e: faults.slow_down(c, e.text("target"), e.number("factor", 2.0)),
        frozenset(("target", "factor")),
    ),
    "degraded": (
        lambda c, e: faults.degrade(c, e.text("target"), e.number("rebuild_share", 0.3)),
        frozenset(("target", "rebuild_share")),
    ),
    "healthy": (lambda c, e: faults.heal(c, e.text("target")), frozenset(("target",))),
    "full": (
        lambda c, e: faults.fill(c, e.text("target"), e.number("free_percent", 0.0)),
        frozenset(("target", "free_percent")),
    ),
    "gone": (lambda c, e: faults.take_down(c, e.text("target")), frozenset(("target",))),
    "recovery": (
        lambda c, e: faults.recover(c, e.text("target"), e.number("seconds", 30.0)), frozenset(("target", "seconds"))
    ),
    "failover": (
        lambda c, e: faults.fail_over(c, e.text("target"), e.number("seconds", 30.0)), frozenset(("target", "seconds"))
    ),
    "changelog_deregistered": (
        lambda c, e: faults.deregister_changelog_user(c, e.text("target"), e.text("user") or "cl1"),
        frozenset(("target", "user")),
    ),
    "changelog_registered": (lambda c, e: faults.register_changelog_user(c, e.text("target")), frozenset(("target",))),
    "changelog_mask": (
        lambda c, e: faults.mask_changelog(c, e.text("target"), e.text("without")), frozenset(("target", "without"))
    ),
    "changelog_gap": (lambda c, e: faults.lose_changelog_records(c, e.text("target")), frozenset(("target",))),
    "changelog_late": (
        lambda c, e: faults.write_changelog_late(c, e.text("target"), int(e.number("every", 7)),
                                                 e.number("seconds", 0.3)),
        frozenset(("target", "every", "seconds")),
    ),
    "files": (
        lambda c, e: faults.lay_down_files(c, e.text("directory"), e.text("target"), int(e.number("files", 100)),
                                           int(e.number("size_bytes", 1 << 20)), e.number("idle_days", 30.0)),
        frozenset(("directory", "target", "files", "size_bytes", "idle_days")),
    ),
    "no_new_objects": (lambda c, e: faults.stop_new_objects(c, e.text("target")), frozenset(("target",))),
    DRAIN_TARGET: (lambda c, e: None, frozenset(("target",))),
    "exporter_unreachable": (
        lambda c, e: faults.make_exporter_unreachable(c, e.number("seconds", 30.0)),
        frozenset(("seconds",)),
    ),
    "exporters_loaded": (
        lambda c, e: faults.load_exporters(c, ExporterLoad(
            e.number("shortest_seconds", 1.0), e.number("longest_seconds", 4.0), e.number("lost_share", 0.0),
            e.number("doubled_share", 0.0))),
        frozenset(("shortest_seconds", "longest_seconds", "lost_share", "doubled_share")),
    ),
    "clock_jump": (lambda c, e: faults.set_clocks(c, e.number("seconds", 3600.0)), frozenset(("seconds",))),
    "mover": (
        lambda c, e: faults.start_second_mover(c, e.text("directory"), e.text("pool"), int(e.number("files", 100))),
        frozenset(("directory", "pool", "files")),
    ),
    "resync": (lambda c, e: faults.start_resync(c, e.text("path")), frozenset(("path",))),
    "job": (lambda c, e: faults.change_job(c, e.text("job"), e.values.get("set", {})), frozenset(("job", "set"))),
    "stop": (lambda c, e: c.stop(e.text("job")), frozenset(("job",))),
}  # fmt: skip
_NUMBER = (int, float)
_KEY_TYPES: Mapping[str, type[Any] | tuple[type[Any], ...]] = {
    "factor": _NUMBER, "rebuild_share": _NUMBER, "free_percent": _NUMBER, "seconds": _NUMBER, "files": _NUMBER,
    "size_bytes": _NUMBER, "idle_days": _NUMBER, "every": _NUMBER, "shortest_seconds": _NUMBER,
    "longest_seconds": _NUMBER, "lost_share": _NUMBER, "doubled_share": _NUMBER,
    "set": dict,
}  # fmt: skip
"""Keys whose values are not text."""
_REQUIRED_KEYS = frozenset(("target", "directory", "pool", "job", "path", "without"))


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a scenario. Times are virtual seconds."""

    at: float
    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def text(self, key: str) -> str:
        return str(self.values.get(key, ""))

    def number(self, key: str, default: float) -> float:
        return float(self.values.get(key, default))

    def __call__(self, cluster: Cluster) -> None:
        with cluster.lock:
            cluster.about_to_change()
            KINDS[self.kind][0](cluster, self)


class Timeline:
    """The pending events of a cluster."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = tuple(sorted(events, key=lambda event: event.at))

    def apply(self, cluster: Cluster) -> None:
        for one in self.events:
            cluster.engine.after(one.at - cluster.now, one, cluster)


def event_from(table: dict[str, Any], where: str, wrong: list[str]) -> Event | None:
    """Read an event from a table. Returns None for a bad one and adds the reason to ``wrong``."""
    at, kind = table.pop("at", None), table.pop("kind", None)
    if kind not in KINDS:
        wrong.append(f"{where}: kind {kind!r} is not one of {', '.join(KINDS)}")
        return None
    if not isinstance(at, (int, float)):
        wrong.append(f"{where}: at needs a number of seconds")
        return None
    if unknown := sorted(set(table) - KINDS[kind][1]):
        wrong.append(f"{where}: {kind} has no {', '.join(unknown)}")
        return None
    for key, value in table.items():
        wanted = _KEY_TYPES.get(key, str)
        if not isinstance(value, wanted) or isinstance(value, bool):
            wrong.append(f"{where}.{key}: {value!r} is not {'text' if wanted is str else 'a number'}")
            return None
    if missing := sorted((KINDS[kind][1] & _REQUIRED_KEYS) - set(table)):
        wrong.append(f"{where}: {kind} needs {', '.join(missing)}")
        return None
    return Event(float(at), kind, table)
