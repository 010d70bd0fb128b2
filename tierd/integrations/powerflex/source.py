"""PowerFlex as a source: which targets a rebuild slows, so that no job is blamed there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from pydantic import AfterValidator

from tierd.background import DaemonExecutor
from tierd.clock import Clock, SystemClock
from tierd.integrations.powerflex.gateway import (
    ErrorKind,
    Gateway,
    Instance,
    PowerFlexSettings,
    PowerFlexSystem,
    StoragePool,
    Volume,
    Work,
    validated,
)
from tierd.integrations.protocol import Integration, Site, Source
from tierd.model import StorageWork
from tierd.sense.freshness import SourceAge
from tierd.sense.http_client import SourceError
from tierd.sense.readings import Reading
from tierd.text import short_name

if TYPE_CHECKING:
    from tierd.audit.checks import Line

SYSTEM = "PowerFlex"
INTERVAL_SECONDS = 30.0
"""Time between two requests to the gateway. A choice: a rebuild takes many minutes."""
REBUILD, REBALANCE, UNKNOWN = "rebuild", "rebalance", "unknown"


def work_of(pool: StoragePool, min_bytes_per_second: float) -> StorageWork | None:
    """The work of a pool that slows its volumes; None if it does none.

    A rebuild counts from its first byte. A rebalance gives way to applications, so it counts from this rate.
    """
    rebuilds = [work for kind, work in pool.work.items() if kind is not Work.REBALANCE]
    if any(work.active_bytes or work.bytes_per_second for work in rebuilds):
        kind, counted = REBUILD, rebuilds
    elif (pool.work[Work.REBALANCE].bytes_per_second or 0.0) >= min_bytes_per_second:
        kind, counted = REBALANCE, [pool.work[Work.REBALANCE]]
    elif all(work.active_bytes is None and work.bytes_per_second is None for work in rebuilds):
        kind, counted = UNKNOWN, []
    else:
        return None
    return StorageWork(kind, pool.name, sum([work.bytes_per_second or 0.0 for work in counted]),
                       sum([work.pending_bytes or 0 for work in counted]), system=SYSTEM, command="scli --query_all")


class PowerFlex(Source):
    """The gateway as a source. It is read in a thread of its own, so that nothing waits for it."""

    def __init__(self, settings: PowerFlexSettings, fsname: str, gateway: Gateway, clock: Clock,
                 executor: Executor) -> None:
        self.settings = settings
        self.gateway = gateway
        self.system: PowerFlexSystem | None = None
        """The last answer."""
        self._targets = {volume: tuple([full_name(fsname, target) for target in targets])
                         for volume, targets in settings.volumes.items()}
        self._clock = clock
        self._executor = executor
        self._asked_at: float | None = None
        self._answered_at: float | None = None
        self._problem = ""
        self._under_way: Future[PowerFlexSystem] | None = None

    @property
    def age(self) -> SourceAge:
        absent = sorted(self._targets.keys() - {volume.name for volume in self.system.volumes}) if self.system else []
        note = f"no volume is called {', '.join(absent)}" if absent else ""
        return SourceAge("powerflex", self._answered_at, self.settings.stale_seconds, self._clock.now(), self._problem,
                         note=note)

    def refresh(self) -> None:
        """Take the answer of the last request if there is one, and send the next if it is due. Never waits."""
        now = self._clock.now()
        self._take()
        due = self._asked_at is None or not 0 <= now - self._asked_at < INTERVAL_SECONDS
        if self._under_way is None and due:
            self._asked_at = now
            self._under_way = self._executor.submit(self.gateway.read)
            self._take()

    def _take(self) -> None:
        if self._under_way is None or not self._under_way.done():
            return
        answer, self._under_way = self._under_way, None
        try:
            self.system = answer.result()
        except SourceError as error:
            self._problem = str(error)
        else:
            self._problem, self._answered_at = "", self._asked_at

    def storage_work(self) -> dict[str, StorageWork]:
        """What slows the volume of each target now, by full target name. Targets on quiet volumes are left out."""
        age = self.age
        system = self.system if self.system and age.age_seconds <= age.limit_seconds else PowerFlexSystem()
        pool_of = {volume.name: volume.pool for volume in system.volumes}
        works = {pool.name: work_of(pool, self.settings.min_bytes_per_second)
                 for pool in reversed(system.pools) if pool.name}
        unknown = StorageWork(UNKNOWN, "", 0.0, 0)
        return {target: work for volume, targets in self._targets.items() for target in targets
                if (work := works.get(pool_of.get(volume, ""), unknown)) is not None}

    def metrics(self) -> Iterator[Metric]:
        work = self.storage_work()
        slowed = {(short_name(target), volume): target in work
                  for volume, targets in self._targets.items() for target in targets}
        return powerflex_metrics(self.gateway.errors, slowed, self.system)

    def noted(self, reading: Reading) -> Reading:
        """The reading, with targets on rebuilding volumes marked as unhealthy: no job is blamed for their speed."""
        work = self.storage_work()
        conditions = {target: f"{SYSTEM} {one.kind}" for target, one in work.items()}
        return replace(reading, conditions={**conditions, **reading.conditions}, storage_work=work)


def full_name(fsname: str, target: str) -> str:
    """Full name of a target of this file system.

    >>> full_name("lustre", "OST0003"), full_name("lustre", "lustre-OST0003")
    ('lustre-OST0003', 'lustre-OST0003')
    """
    return target if "-" in target else f"{fsname}-{target}"


def start(settings: PowerFlexSettings, site: Site) -> PowerFlex:
    return PowerFlex(settings, site.fsname, Gateway(settings, site.clock.now), site.clock,
                     DaemonExecutor("powerflex", 1))


def audit(settings: PowerFlexSettings) -> Sequence[Line]:
    """Compare the system with the paper. Raises OSError."""
    from tierd.integrations.powerflex.audit import powerflex_lines  # noqa: PLC0415 -- of tierctl audit only

    return tuple(powerflex_lines(Gateway(settings, SystemClock().now).read()))


INTEGRATION = Integration(
    settings=Annotated[PowerFlexSettings, AfterValidator(validated)], configured=lambda settings: bool(settings.url),
    start=start, audit=audit)


def powerflex_metrics(failed: Mapping[ErrorKind, int], slowed: Mapping[tuple[str, str], bool],
                      system: PowerFlexSystem | None) -> Iterator[Metric]:
    """The storage below the OSTs, as far as known. ``slowed`` has each target with its volume."""
    errors = CounterMetricFamily("tierd_powerflex_errors", "Requests to the PowerFlex gateway that failed, by reason.",
                                 labels=("reason",))
    for kind in ErrorKind:
        errors.add_metric((kind.value,), failed[kind])
    yield errors
    yield labelled("tierd_powerflex_target_slowed",
                   "1 if PowerFlex rebuilds or rebalances below the target, or if its state is unknown; otherwise 0. "
                   "While it is 1, tierd blames no job on the target.", ("target", "volume"), list(slowed.items()))
    if system is None:
        return
    yield labelled("tierd_powerflex_mdm_cluster_info", "Always 1. The label has the state of the cluster of MDMs.",
                   ("state",), [((system.cluster_state or "unknown",), 1)])
    yield labelled("tierd_powerflex_mdm_good_nodes", "MDMs and tie breakers that work.", (), [((), system.good_nodes)])
    yield labelled("tierd_powerflex_mdm_good_replicas", "MDMs with a copy of the configuration that work.", (),
                   [((), system.good_replicas)])
    yield from instance_metrics("sds", "data server", system.data_servers)
    yield from instance_metrics("sdc", "data client", system.data_clients)
    yield labelled("tierd_powerflex_devices", "Devices of data servers, by state.", ("state",),
                   [((state,), number) for state, number in sorted(system.devices.items())])
    yield from pool_metrics(system.pools)
    yield from volume_metrics(system.volumes)


Rows = Sequence[tuple[tuple[str, ...], float | None]]


def labelled(name: str, text: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    """A gauge with a series for each row with a known value. Of rows with the same labels, the first counts."""
    found = GaugeMetricFamily(name, text, labels=labels)
    for values, number in {row[0]: row[1] for row in reversed(rows)}.items():
        if number is not None:
            found.add_metric(values, float(number))
    return found


def instance_metrics(kind: str, what: str, instances: Sequence[Instance]) -> Iterator[Metric]:
    yield labelled(f"tierd_powerflex_{kind}_connected",
                   f"Whether the PowerFlex {what} is connected to the MDM (1) or not (0).", (kind,),
                   [((one.name,), one.connected) for one in instances])
    if kind == "sds":
        yield labelled("tierd_powerflex_sds_in_maintenance",
                       "Whether the PowerFlex data server is in maintenance (1) or not (0).", (kind,),
                       [((one.name,), one.in_maintenance) for one in instances])
    yield labelled(f"tierd_powerflex_{kind}_info",
                   f"Always 1. The label has the performance profile of the PowerFlex {what}.", (kind, "profile"),
                   [((one.name, one.profile), 1) for one in instances])
    yield labelled(f"tierd_powerflex_{kind}_setting", f"Settings of the PowerFlex {what} that the gateway shows.",
                   (kind, "setting"),
                   [((one.name, name), value) for one in instances for name, value in one.tunables.items()])


def pool_metrics(pools: Sequence[StoragePool]) -> Iterator[Metric]:
    for name, text in (
        ("size_bytes", "Size of the PowerFlex storage pool."),
        ("used_bytes", "Used space of the PowerFlex storage pool, with all copies."),
        ("degraded_bytes", "Data of the PowerFlex storage pool with one copy left."),
        ("failed_bytes", "Data of the PowerFlex storage pool without a copy."),
    ):
        yield labelled(f"tierd_powerflex_pool_{name}", text, ("pool",),
                       [((pool.name,), getattr(pool, name)) for pool in pools])
    for name, text in (
        ("bytes_per_second", "Bytes that the PowerFlex storage pool writes for a rebuild or rebalance."),
        ("active_bytes", "Data in a rebuild or rebalance now."),
        ("pending_bytes", "Data that waits for a rebuild or rebalance."),
    ):
        yield labelled(f"tierd_powerflex_pool_work_{name}", text, ("pool", "work"),
                       [((pool.name, kind.value), getattr(work, name))
                        for pool in pools for kind, work in pool.work.items()])


def volume_metrics(volumes: Sequence[Volume]) -> Iterator[Metric]:
    for name, text in (
        ("size_bytes", "Size of the PowerFlex volume."),
        ("read_bytes_per_second", "Bytes read from the PowerFlex volume."),
        ("write_bytes_per_second", "Bytes written to the PowerFlex volume."),
    ):
        yield labelled(f"tierd_powerflex_volume_{name}", text, ("volume", "pool"),
                       [((one.name, one.pool), getattr(one, name)) for one in volumes])
