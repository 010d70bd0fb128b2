"""Compares a PowerFlex system with the paper "Lustre on PowerFlex" (Dell and Intel). Pure: a system in, lines out.

The public REST API shows the performance profile of each data server and client. Whether a gateway also shows the
single settings is not documented; those that it shows are compared, the others are unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from tierd.audit.checks import POWERFLEX, Line, State
from tierd.integrations.powerflex.gateway import TUNABLES, Instance, PowerFlexSystem, Work
from tierd.text import binary_text, count_of, first_names, rate_text

BEST_PROFILE = "HighPerformance"
WHAT = {"Sds": "data server", "Sdc": "data client"}
MEANING: Mapping[str, str] = {
    "sds_number_os_threads": "Threads of a data server that serve requests.",
    "sdc_number_sockets_per_sds_ip": "Connections of a client to each address of a data server.",
    "sdc_number_network_os_threads": "Threads of a client that send and receive.",
    "sdc_max_inflight_requests": "Requests of a client in flight.",
    "sdc_max_inflight_data": "Data of a client in flight.",
}
NORMAL_CLUSTERS = frozenset({"ClusteredNormal", "ClusteredTightlyCoupled"})


def powerflex_lines(system: PowerFlexSystem) -> Iterator[Line]:
    subject = f"PowerFlex {system.name}".strip()
    for kind, instances in (("Sds", system.data_servers), ("Sdc", system.data_clients)):
        yield from _profiles(subject, kind, instances)
        for name, value in TUNABLES[kind].items():
            yield _tunable(subject, kind, name, value, instances)
    yield from _states(subject, system)


def _profiles(subject: str, kind: str, instances: Sequence[Instance]) -> Iterator[Line]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for one in instances:
        found[one.profile].append(one.name)
    for profile, names in sorted(found.items()):
        state = State.UNKNOWN if not profile else State.OK if profile == BEST_PROFILE else State.NOTE
        yield Line(
            "powerflex-profile", subject,
            f"performance profile = {profile or 'unknown'} on {count_of(len(names), WHAT[kind])}: "
            f"{first_names(names)}",
            f"more threads and requests than the defaults ({POWERFLEX})", state,
            why="The profile sets threads, connections and requests in flight together.",
            expect="" if state is not State.NOTE else "More IOPS of each OST, for more memory and processor time.",
            command="" if state is not State.NOTE else
            f"scli --set_performance_parameters --all_{kind.lower()} --apply_to_mdm --profile high_performance")


def _tunable(subject: str, kind: str, name: str, value: int, instances: Sequence[Instance]) -> Line:
    shown = {one.name: one.tunables[name] for one in instances if name in one.tunables}
    other = [instance for instance, present in shown.items() if present != value]
    setting = f"{name} = {', '.join(map(str, sorted(set(shown.values())))) if shown else 'not shown by the gateway'}"
    state = State.UNKNOWN if not shown else State.NOTE if other else State.OK
    command = "" if state is State.OK else (
        "scli --query_performance_parameters shows it" if state is State.UNKNOWN else
        f"scli --set_performance_parameters --all_{kind.lower()} --{name} {value}")
    return Line("powerflex-settings", subject, setting, f"{value} on {WHAT[kind]}s ({POWERFLEX})", state,
                why=MEANING[name],
                expect="Measured with one system only: compare before and after." if other else "", command=command)


def _states(subject: str, system: PowerFlexSystem) -> Iterator[Line]:
    line = partial(Line, "powerflex-state", subject, source="no degraded part while the file system is measured")
    if system.cluster_state:
        normal = system.cluster_state in NORMAL_CLUSTERS
        yield line(f"cluster of MDMs = {system.cluster_state}", state=State.OK if normal else State.ADVICE,
                   why="The metadata managers decide where data is.",
                   command="" if normal else "scli --query_cluster")
    for kind, instances in (("Sds", system.data_servers), ("Sdc", system.data_clients)):
        lost = [one.name for one in instances if one.connected is False]
        if lost:
            yield line(f"not connected = {first_names(lost)}", state=State.ADVICE,
                       why=f"These {WHAT[kind]}s are not connected to the metadata manager.",
                       command=f"scli --query_all_{kind.lower()}")
    for pool in system.pools:
        for kind, work in pool.work.items():
            if work.active_bytes or work.bytes_per_second:
                yield line(f"{kind.value} of pool {pool.name} = {rate_text(work.bytes_per_second or 0.0)}, "
                           f"{binary_text(work.pending_bytes or 0)} wait",
                           state=State.NOTE if kind is Work.REBALANCE else State.ADVICE,
                           why="It slows the OSTs on volumes of this pool.",
                           expect="The OSTs are as fast as before when it ends.")
