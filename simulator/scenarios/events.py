"""Events of a scenario: changes to a running cluster, with their times.

The keys of a kind besides ``at`` are the parameters of its function in :mod:`simulator.faults`; keys of those with a
default may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from simulator import faults
from simulator.toml_settings import values_of

if TYPE_CHECKING:
    from simulator.cluster import Cluster

DRAIN_TARGET = "drain_target"
KINDS: Mapping[str, Callable[..., None]] = {
    "slow": faults.slow_down,
    "degraded": faults.degrade,
    "healthy": faults.heal,
    "full": faults.fill,
    "gone": faults.take_down,
    "recovery": faults.recover,
    "failover": faults.fail_over,
    "changelog_deregistered": faults.deregister_changelog_user,
    "changelog_registered": faults.register_changelog_user,
    "changelog_mask": faults.mask_changelog,
    "changelog_gap": faults.lose_changelog_records,
    "changelog_late": faults.write_changelog_late,
    "files": faults.lay_down_files,
    "no_new_objects": faults.stop_new_objects,
    DRAIN_TARGET: faults.drain_target,
    "exporter_unreachable": faults.make_exporter_unreachable,
    "clock_jump": faults.set_clocks,
    "mover": faults.start_second_mover,
    "resync": faults.start_resync,
    "job": faults.change_job,
    "stop": faults.stop_job,
}


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a scenario. Times are virtual seconds."""

    at: float
    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, cluster: Cluster) -> None:
        with cluster.lock:
            cluster.about_to_change()
            KINDS[self.kind](cluster, **self.values)


def schedule(events: Iterable[Event], cluster: Cluster) -> None:
    for one in sorted(events, key=lambda event: event.at):
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
    values = values_of(KINDS[kind], table, wrong, where, kind)
    if values is None:
        return None
    needed = [key for key, one in signature(KINDS[kind]).parameters.items() if one.default is Parameter.empty]
    if missing := sorted({*needed} - {"cluster", *values}):
        wrong.append(f"{where}: {kind} needs {', '.join(missing)}")
        return None
    return Event(float(at), kind, values)
