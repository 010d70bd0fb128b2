"""Nodes whose Omni-Path driver has other parameters than the paper that measured Lustre over it.

The paper (Dell and Intel, "Lustre on PowerFlex") tuned the driver ``hfi1`` on servers and on clients. The counters do
not show what a parameter costs, so it is advice for nodes with traffic only. Nodes without such an adapter have no
parameters, and there is no finding about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tierd.advised import CLIENT_DRIVER, DRIVER_TEXTS, SERVER_DRIVER, driver_command, driver_value
from tierd.detect.groups import grouped
from tierd.detect.view import View
from tierd.loads import OTHER_OPERATIONS, READS, Loads
from tierd.model import Advice, Finding
from tierd.policies.protocol import Common, Policy
from tierd.text import count_of, first_names
from tierd.validators import Positive


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    min_rpcs_per_second: Positive = 20.0
    """Minimum bulk RPCs of a client, or of all servers. A finding about less traffic stays while there is any. A
    choice."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    servers = view.facts.server_drivers
    clients = {client.client: client.fabric_driver for client in view.clients
               if client.fabric_driver and client.client not in servers and _enough(
                   sum(load.rpcs for load in client.rpcs if load.kind == "osc") / client.seconds, "clients", view,
                   settings)}
    yield from of_nodes("clients", clients, CLIENT_DRIVER, view)
    if not servers:
        return
    recent = view.recent()
    served = sum(Loads.of(window.loads).numbers[:, READS:OTHER_OPERATIONS].sum() for window in recent)
    if _enough(served / max(sum(window.seconds for window in recent), 1e-9), "servers", view, settings):
        yield from of_nodes("servers", servers, SERVER_DRIVER, view)


def _enough(rpcs_per_second: float, role: str, view: View, settings: Settings) -> bool:
    held = (POLICY.name, "", role) in view.active
    return rpcs_per_second > 0 if held else rpcs_per_second >= settings.min_rpcs_per_second


def of_nodes(role: str, drivers: Mapping[str, Mapping[str, int]], wanted: Mapping[str, int],
             view: View) -> Iterator[Finding]:
    """The finding about the nodes of one role, if a parameter differs. Parameters that a driver lacks do not count."""
    differ = grouped(((name, driver[name]), node) for node, driver in sorted(drivers.items())
                     for name, value in wanted.items() if driver.get(name, value) != value)
    if not differ:
        return
    nodes = {node for those in differ.values() for node in those}
    parts = [f"{name} is {driver_value(name, value)} on {count_of(len(those), role[:-1])} ({first_names(those)})"
             for (name, value), those in sorted(differ.items())]
    by_name = grouped((name, node) for (name, _), those in sorted(differ.items()) for node in those)
    yield POLICY.finding(
        view, f"the Omni-Path driver of {role} has other parameters than Dell and Intel measured: {'; '.join(parts)}",
        {"nodes": len(nodes), "parameters": len(by_name)}, subject=role,
        advice=(Advice(driver_command(name, wanted[name]), f"on {role}: {first_names(sorted(by_name[name]))}",
                       f"{DRIVER_TEXTS[name]} Measured with one file system only: compare before and after")
                for name in by_name))


POLICY = Policy("omni-path", Settings, find)
