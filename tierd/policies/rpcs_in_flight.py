"""Clients that usually have as many RPCs in flight as the limit allows.

The histogram in ``rpc_stats`` shows the RPCs sent while the limit was reached. A higher limit helps a client whose
targets have idle time (flash, many disks, a network with high latency). If the disks are the bottleneck, it only
lengthens their queue for all clients. There is no finding in that case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tierd.detect.groups import grouped
from tierd.detect.view import View, client_names, mean_concurrent_rpcs, share_at
from tierd.model import Advice, ClientLoad, Finding
from tierd.policies.protocol import Common, Policy, edge
from tierd.text import percent, quoted
from tierd.validators import Positive, Share

MAX_RPCS_IN_FLIGHT = 256
"""Lustre's own limit of ``osc.*.max_rpcs_in_flight``."""
MAX_AT_WORK = 2.0
"""Mean number of concurrent RPCs above which a disk target counts as busy. A choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Share = 0.5
    """The finding begins at this share of RPCs that were sent at the limit. Most of them: a choice."""
    min_rpcs_per_second: Positive = 20.0
    """Minimum rate of RPCs of a client, to one pool in one direction. A choice."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    found = grouped((subject, (client, load)) for client in view.clients for load in client.rpcs
                    for subject in [(client.fsname, load.kind, load.pool, load.direction)]
                    if load.max_in_flight and load.rpcs / client.seconds >= settings.min_rpcs_per_second
                    and share_at(load.max_in_flight, load.in_flight) >= edge(
                        settings.enter, view, POLICY.name, "", " ".join(subject)))
    for subject, pairs in sorted(found.items()):
        fsname, kind, pool, direction = subject
        disks = view.targets_of_pool(fsname, pool) - set(view.flash) if kind == "osc" else frozenset()
        at_once = mean_concurrent_rpcs(view.profiles(), disks) or 0.0  # more would only wait there
        limit = min(load.max_in_flight for _, load in pairs)
        if limit >= MAX_RPCS_IN_FLIGHT or at_once > MAX_AT_WORK:
            continue
        clients, rpcs = [client for client, _ in pairs], sum(load.rpcs for _, load in pairs)
        share = sum(share_at(load.max_in_flight, load.in_flight) * load.rpcs for _, load in pairs) / rpcs
        place = f"pool {quoted(pool)}" if kind == "osc" and pool else quoted(pool) if pool else "all targets"
        yield POLICY.finding(
            view, f"{percent(share)} of {rpcs:.0f} {direction} RPCs to {place} were sent at the limit of {limit:.0f} "
            f"RPCs in flight, on {client_names(clients)}",
            {"saturated_share": share, "rpcs": rpcs, "max_rpcs_in_flight": limit, "clients": len(clients)},
            subject=" ".join(subject), advice=advise(subject, clients, limit))


def advise(subject: tuple[str, str, str, str], clients: Sequence[ClientLoad], limit: float) -> Iterator[Advice]:
    fsname, kind, pool, direction = subject
    more, where = min(2 * limit, MAX_RPCS_IN_FLIGHT), f"on {client_names(clients)}"
    if kind == "osc":
        yield Advice(f"lctl set_param osc.{fsname}-OST*.max_rpcs_in_flight={more:.0f}", where,
                     "more throughput if the targets have idle time (flash, network latency); on busy disks it only "
                     "lengthens the queue: watch for noisy-neighbour, and undo it if other jobs slow down")
        if direction == "write":
            yield Advice(f"lctl set_param osc.{fsname}-OST*.max_dirty_mb=MEGABYTES", where,
                         "at least max_rpcs_in_flight times the size of an RPC, so that there is data for all of them")
    elif direction == "modify":
        every = min((load.max_in_flight for client in clients for load in client.rpcs
                     if (load.kind, load.pool) == (kind, pool) and load.direction != direction), default=0.0)
        first = f"mdc.{fsname}-MDT*.max_rpcs_in_flight={more + 1:.0f} " if every <= more else ""  # it must be larger
        yield Advice(f"lctl set_param {first}mdc.{fsname}-MDT*.max_mod_rpcs_in_flight={more:.0f}", where,
                     "more parallel creates and unlinks from one client; refused above the limit of the MDT, which is "
                     "8 by default (mdt.*.max_mod_rpcs_in_flight since 2.16): raise that first")
    else:
        yield Advice(f"lctl set_param mdc.{fsname}-MDT*.max_rpcs_in_flight={more:.0f}", where,
                     "more parallel lookups from one client; lookups need no reply slot on the MDT, creates do")


POLICY = Policy("rpcs-in-flight", Settings, find)
