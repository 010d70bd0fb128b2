"""Compares a PowerFlex system with the paper "Lustre on PowerFlex" (Dell and Intel). Pure: a system in, lines out.

The public REST API shows the performance profile of each data server and client. Whether a gateway also shows the
single settings is not documented; those that it shows are compared, the others are unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tierd.audit.checks import POWERFLEX, Line, State
from tierd.integrations.powerflex.gateway import TUNABLES, Part, PowerFlexSystem
from tierd.text import count_of, first_names

BEST_PROFILE = "HighPerformance"
WHAT = {"Sds": "data server", "Sdc": "data client"}
MEANING: Mapping[str, str] = {
    "sds_number_os_threads": "Threads of a data server that serve requests.",
    "sdc_number_sockets_per_sds_ip": "Connections of a client to each address of a data server.",
    "sdc_number_network_os_threads": "Threads of a client that send and receive.",
    "sdc_max_inflight_requests": "Requests of a client in flight.",
    "sdc_max_inflight_data": "Data of a client in flight.",
}


def powerflex_lines(system: PowerFlexSystem) -> Iterator[Line]:
    subject = f"PowerFlex {system.whole.name}".strip()
    for kind, settings in TUNABLES.items():
        yield from _profiles(subject, kind, system.of(kind))
        for name, value in settings.items():
            yield _tunable(subject, kind, name, value, system.of(kind))


def _profiles(subject: str, kind: str, instances: Sequence[Part]) -> Iterator[Line]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for one in instances:
        found[one.text("perfProfile")].append(one.name)
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


def _tunable(subject: str, kind: str, name: str, value: int, instances: Sequence[Part]) -> Line:
    shown = {present for one in instances if (present := one.setting(name)) is not None}
    other = shown - {value}
    setting = f"{name} = {', '.join(map(str, sorted(shown))) if shown else 'not shown by the gateway'}"
    state = State.UNKNOWN if not shown else State.NOTE if other else State.OK
    command = "" if state is State.OK else (
        "scli --query_performance_parameters shows it" if state is State.UNKNOWN else
        f"scli --set_performance_parameters --all_{kind.lower()} --{name} {value}")
    return Line("powerflex-settings", subject, setting, f"{value} on {WHAT[kind]}s ({POWERFLEX})", state,
                why=MEANING[name],
                expect="Measured with one system only: compare before and after." if other else "", command=command)
