"""Metrics of a PowerFlex system, as of the last answer of its gateway."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tierd.integrations.powerflex.gateway import ErrorKind, Instance, PowerFlexSystem, StoragePool, Volume


def powerflex_metrics(failed: Mapping[ErrorKind, int], slowed_targets: Mapping[tuple[str, str], bool],
                      system: PowerFlexSystem | None) -> Iterator[Metric]:
    """The storage below the OSTs, as far as known. ``slowed_targets`` has each target with its volume."""
    errors = CounterMetricFamily("tierd_powerflex_errors", "Requests to the PowerFlex gateway that failed, by reason.",
                                 labels=("reason",))
    for kind in ErrorKind:
        errors.add_metric((kind.value,), failed[kind])
    yield errors
    slowed = GaugeMetricFamily("tierd_powerflex_target_slowed",
                               "1 if PowerFlex rebuilds or rebalances below the target, or if its state is unknown;"
                               " otherwise 0. While it is 1, tierd blames no job on the target.",
                               labels=("target", "volume"))
    for labels, is_slowed in slowed_targets.items():
        slowed.add_metric(labels, float(is_slowed))
    yield slowed
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
            found.add_metric(values, number)
    return found


def instance_metrics(kind: str, what: str, instances: Sequence[Instance]) -> Iterator[Metric]:
    yield labelled(f"tierd_powerflex_{kind}_connected",
                   f"Whether the PowerFlex {what} is connected to the MDM (1) or not (0).", (kind,),
                   [((one.name,), None if one.connected is None else float(one.connected)) for one in instances])
    if kind == "sds":
        yield labelled("tierd_powerflex_sds_in_maintenance",
                       "Whether the PowerFlex data server is in maintenance (1) or not (0).", (kind,),
                       [((one.name,), None if one.in_maintenance is None else float(one.in_maintenance))
                        for one in instances])
    yield labelled(f"tierd_powerflex_{kind}_info",
                   f"Always 1. The label has the performance profile of the PowerFlex {what}.", (kind, "profile"),
                   [((one.name, one.profile), 1) for one in instances])
    yield labelled(f"tierd_powerflex_{kind}_setting", f"Settings of the PowerFlex {what} that the gateway shows.",
                   (kind, "setting"),
                   [((one.name, name), value) for one in instances for name, value in one.tunables.items()])


def pool_metrics(pools: Sequence[StoragePool]) -> Iterator[Metric]:
    for name, text in (
        ("size", "Size of the PowerFlex storage pool."),
        ("used", "Used space of the PowerFlex storage pool, with all copies."),
        ("degraded", "Data of the PowerFlex storage pool with one copy left."),
        ("failed", "Data of the PowerFlex storage pool without a copy."),
    ):
        yield labelled(f"tierd_powerflex_pool_{name}_bytes", text, ("pool",),
                       [((pool.name,), getattr(pool, f"{name}_bytes")) for pool in pools])
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
