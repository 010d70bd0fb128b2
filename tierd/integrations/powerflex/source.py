"""PowerFlex as a source: which targets a rebuild slows, so that no job is blamed there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Annotated

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from pydantic import AfterValidator

from tierd.background import DaemonExecutor
from tierd.clock import Clock
from tierd.integrations.powerflex.gateway import (
    FIELDS,
    TUNABLES,
    ErrorKind,
    Gateway,
    Part,
    PowerFlexSettings,
    PowerFlexSystem,
    Work,
    validated,
)
from tierd.integrations.protocol import Integration, Site, Source
from tierd.model import StorageWork
from tierd.sense.freshness import SourceAge
from tierd.sense.http_client import SourceError
from tierd.sense.readings import Reading
from tierd.text import short_name

SYSTEM, COMMAND = "PowerFlex", "scli --query_all"
INTERVAL_SECONDS = 30.0
"""Time between two requests to the gateway. A choice: a rebuild takes many minutes."""
REBUILD, REBALANCE, UNKNOWN = "rebuild", "rebalance", "unknown"


def work_of(pool: Part, min_bytes_per_second: float) -> StorageWork | None:
    """The work of a pool that slows its volumes; None if it does none.

    A rebuild counts from its first byte. A rebalance gives way to applications, so it counts from this rate.
    """
    speeds = {work: pool.bytes_per_second(rate) for work, (rate, _, _) in FIELDS.items()}
    rebuilds = [work for work in Work if work is not Work.REBALANCE]
    numbers = [number for work in rebuilds for number in (speeds[work], pool.count(FIELDS[work][1]))]
    shown = [number for number in numbers if number is not None]
    counted = rebuilds if any(shown) else [*FIELDS.keys() - rebuilds]
    if any(shown):
        kind = REBUILD
    elif (speeds[Work.REBALANCE] or 0.0) >= min_bytes_per_second:
        kind = REBALANCE
    elif not shown:
        return StorageWork(UNKNOWN, pool.name, 0.0, 0, system=SYSTEM, command=COMMAND)
    else:
        return None
    return StorageWork(kind, pool.name, sum([speeds[work] or 0.0 for work in counted]),
                       sum([pool.size_bytes(FIELDS[work][2]) or 0 for work in counted]), system=SYSTEM, command=COMMAND)


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
        absent = sorted(self._targets.keys() - {one.name for one in self.system.of("Volume")}) if self.system else []
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
        pool_of = {volume.name: volume.pool for volume in system.of("Volume")}
        works = {pool.name: work_of(pool, self.settings.min_bytes_per_second)
                 for pool in reversed(system.of("StoragePool")) if pool.name}
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


INTEGRATION = Integration(
    settings=Annotated[PowerFlexSettings, AfterValidator(validated)], configured=lambda settings: bool(settings.url),
    start=start)


def powerflex_metrics(failed: Mapping[ErrorKind, int], slowed: Mapping[tuple[str, str], bool],
                      system: PowerFlexSystem | None) -> Iterator[Metric]:
    """The storage below the OSTs, as far as known. ``slowed`` has each target with its volume."""
    errors = CounterMetricFamily("tierd_powerflex_errors", "Requests to the PowerFlex gateway that failed, by reason.",
                                 labels=("reason",))
    for reason in ErrorKind:
        errors.add_metric((reason.value,), failed[reason])
    yield errors
    yield labelled("target_slowed",
                   "1 if PowerFlex rebuilds or rebalances below the target, or if its state is unknown; otherwise 0. "
                   "While it is 1, tierd blames no job on the target.", ("target", "volume"), list(slowed.items()))
    if system is None:
        return
    for name, text, kind, number, field in SHOWN:
        yield labelled(name, text, LABELS[kind], [
            ((one.name, one.pool)[:len(LABELS[kind])], number(one, field)) for one in system.of(kind)])
    for kind, what in (("Sds", "data server"), ("Sdc", "data client")):
        label, parts = kind.lower(), system.of(kind)
        yield labelled(f"{label}_info", f"Always 1. The label has the performance profile of the PowerFlex {what}.",
                       (label, "profile"), [((one.name, one.text("perfProfile")), 1) for one in parts])
        yield labelled(f"{label}_setting", f"Settings of the PowerFlex {what} that the gateway shows.",
                       (label, "setting"),
                       [((one.name, name), one.setting(name)) for one in parts for name in TUNABLES[kind]])
    yield labelled("mdm_cluster_info", "Always 1. The label has the state of the cluster of MDMs.", ("state",),
                   [((system.whole.text("clusterState") or "unknown",), 1)])
    devices = Counter(one.text("deviceState") or "unknown" for one in system.of("Device"))
    yield labelled("devices", "Devices of data servers, by state.", ("state",),
                   [((state,), number) for state, number in sorted(devices.items())])
    for place, (name, text, number) in enumerate((
        ("bytes_per_second", "Bytes that the PowerFlex storage pool writes for a rebuild or rebalance.",
         Part.bytes_per_second),
        ("active_bytes", "Data in a rebuild or rebalance now.", Part.size_bytes),
        ("pending_bytes", "Data that waits for a rebuild or rebalance.", Part.size_bytes),
    )):
        yield labelled(f"pool_work_{name}", text, ("pool", "work"), [
            ((pool.name, work.value), number(pool, fields[place]))
            for pool in system.of("StoragePool") for work, fields in FIELDS.items()])


Rows = Sequence[tuple[tuple[str, ...], float | None]]


def labelled(name: str, text: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    """A gauge with a series for each row with a known value. Of rows with the same labels, the first counts."""
    found = GaugeMetricFamily(f"tierd_powerflex_{name}", text, labels=labels)
    for values, number in {row[0]: row[1] for row in reversed(rows)}.items():
        if number is not None:
            found.add_metric(values, float(number))
    return found


def degraded_bytes(pool: Part, field: str) -> int | None:
    found = [pool.size_bytes(field.format(which)) for which in ("Healthy", "Failed")]
    known = [size for size in found if size is not None]
    return sum(known) if known else None


LABELS: Mapping[str, tuple[str, ...]] = {
    "System": (), "Sds": ("sds",), "Sdc": ("sdc",), "StoragePool": ("pool",), "Volume": ("volume", "pool")}
"""Labels with the name of a part, by its type, and with that of the pool of a volume."""
Number = Callable[[Part, str], float | None]
SHOWN: Sequence[tuple[str, str, str, Number, str]] = (
    ("mdm_good_nodes", "MDMs and tie breakers that work.", "System", Part.count, "goodNodesNum"),
    ("mdm_good_replicas", "MDMs with a copy of the configuration that work.", "System", Part.count, "goodReplicasNum"),
    ("sds_connected", "Whether the PowerFlex data server is connected to the MDM (1) or not (0).", "Sds",
     Part.is_connected, "mdmConnectionState"),
    ("sdc_connected", "Whether the PowerFlex data client is connected to the MDM (1) or not (0).", "Sdc",
     Part.is_connected, "mdmConnectionState"),
    ("sds_in_maintenance", "Whether the PowerFlex data server is in maintenance (1) or not (0).", "Sds",
     Part.is_in_maintenance, "maintenanceState"),
    ("pool_size_bytes", "Size of the PowerFlex storage pool.", "StoragePool", Part.size_bytes, "maxCapacityInKb"),
    ("pool_used_bytes", "Used space of the PowerFlex storage pool, with all copies.", "StoragePool", Part.size_bytes,
     "capacityInUseInKb"),
    ("pool_degraded_bytes", "Data of the PowerFlex storage pool with one copy left.", "StoragePool", degraded_bytes,
     "degraded{}CapacityInKb"),
    ("pool_failed_bytes", "Data of the PowerFlex storage pool without a copy.", "StoragePool", Part.size_bytes,
     "failedCapacityInKb"),
    ("volume_size_bytes", "Size of the PowerFlex volume.", "Volume", Part.size_bytes, "sizeInKb"),
    ("volume_read_bytes_per_second", "Bytes read from the PowerFlex volume.", "Volume", Part.bytes_per_second,
     "userDataReadBwc"),
    ("volume_write_bytes_per_second", "Bytes written to the PowerFlex volume.", "Volume", Part.bytes_per_second,
     "userDataWriteBwc"),
)
"""Gauges with one number of each part: name, HELP text, type of the part, the number and its field."""
