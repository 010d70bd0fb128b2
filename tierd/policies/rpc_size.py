"""RPCs that could be larger: most have the size of a low limit, or are much smaller than a high limit.

The limit is a setting of clients and targets. RPCs stay below it because of the application, or because the client
lacks memory to gather a full RPC. There is no finding if the files are as small as the RPCs: a client reads a file of
1 MiB in one RPC of 1 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tierd.advised import MIB, RPC_BYTES, RPCS_IN_WINDOW, USUAL_RPC_BYTES
from tierd.detect.groups import grouped, totals
from tierd.detect.profile import Classes
from tierd.detect.view import View, client_names, rpcs_saved, share_at, traffic
from tierd.model import Advice, ClientLoad, Finding, RpcLoad
from tierd.policies.protocol import Common, Policy, edge
from tierd.text import binary_text, percent, quoted
from tierd.validators import Positive

PAGE_BYTES = 4096
"""Page size of x86. On machines with larger pages the figures in bytes are too low; shares are correct."""
AT_LIMIT, UNFILLED = "limit", "unfilled"
FULL_SHARE = 0.8
"""Share of RPCs with the size of the limit from which the limit is the cause. A choice."""
LARGE_PAGES = 1024
"""A limit of at least this many pages (4 MiB) is not low."""
FILL = 0.25
"""The finding begins if the mean RPC is below this share of the limit. A choice."""
MIN_SAVED = 0.3
"""Minimum share of the jobs' RPCs that larger RPCs would save, given the sizes of files. A choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    min_bytes_per_second: Positive = 10e6
    """Minimum throughput of a client in these RPCs. A choice."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    found = grouped(((client.fsname, load.pool, load.direction, why), (client, load))
                    for client in view.clients for load in client.rpcs
                    if load.kind == "osc" and (why := cause(client, load, view, settings)))
    for subject, pairs in sorted(found.items()):
        if not (advice := tuple(advise(subject, pairs, view))):
            continue
        _, pool, direction, why = subject
        limit = min(load.max_pages for _, load in pairs)
        pages = totals(each for _, load in pairs for each in load.pages.items())
        rpcs, mean, at_limit = sum(pages.values()), mean_pages(pages), share_at(limit, pages)
        size, most = binary_text(mean * PAGE_BYTES), binary_text(limit * PAGE_BYTES)
        where = client_names([client for client, _ in pairs])
        which = f"{direction} RPCs{f' to pool {quoted(pool)}' if pool else ''} on {where}"
        words = (f"{percent(at_limit)} of {rpcs:.0f} {which} have the maximum size of {most}"
                 if why == AT_LIMIT else f"{which} have {size} on average; the maximum is {most}")
        yield POLICY.finding(view, words, {
            "mean_rpc_bytes": mean * PAGE_BYTES, "max_rpc_bytes": limit * PAGE_BYTES, "full_share": at_limit,
            "rpcs": rpcs, "clients": len(pairs)}, subject=" ".join(subject), advice=advice)


def mean_pages(sent: Mapping[int, float]) -> float:
    """Mean pages per RPC, from the upper bounds of the histogram.

    >>> mean_pages({1: 50, 256: 50})
    128.5
    """
    rpcs = sum(sent.values())
    return sum(pages * count for pages, count in sent.items()) / rpcs if rpcs else 0.0


def cause(client: ClientLoad, load: RpcLoad, view: View, settings: Settings) -> str:
    mean = mean_pages(load.pages)
    if not load.max_pages or sum(load.pages.values()) * mean * PAGE_BYTES < (
            settings.min_bytes_per_second * client.seconds):
        return ""
    if load.max_pages < LARGE_PAGES and share_at(load.max_pages, load.pages) >= FULL_SHARE:
        return AT_LIMIT
    subject = " ".join((client.fsname, load.pool, load.direction, UNFILLED))
    return UNFILLED if mean * edge(1 / FILL, view, POLICY.name, "", subject) < load.max_pages else ""


def advise(subject: tuple[str, str, str, str], pairs: Sequence[tuple[ClientLoad, RpcLoad]],
           view: View) -> Iterator[Advice]:
    """Advice for a cause. Empty if file sizes or present settings leave nothing to gain."""
    fsname, pool, direction, why = subject
    clients = [client for client, _ in pairs]
    where = f"on {client_names(clients)}"
    limit_bytes = round(min(load.max_pages for _, load in pairs) * PAGE_BYTES)
    targets = view.targets_of_pool(fsname, pool)
    accepted = min((view.facts.max_rpc_bytes.get(target, 0) for target in targets), default=0)  # 0: not known of all
    wanted = USUAL_RPC_BYTES if not accepted else accepted if accepted > limit_bytes else RPC_BYTES
    rpc_bytes = wanted if why == AT_LIMIT else limit_bytes
    parts = list(traffic(view.profiles(), targets, direction))
    saved = rpcs_saved(parts, rpc_bytes)
    if saved is not None and saved < MIN_SAVED:
        return
    if why == AT_LIMIT:
        if accepted <= limit_bytes:
            yield Advice(f"lctl set_param obdfilter.{fsname}-*.brw_size={wanted // MIB}", "on all OSS first",
                         f"targets accept RPCs of {binary_text(wanted)}; clients use them after they reconnect")
        yield Advice(f"lctl set_param osc.{fsname}-OST*.max_pages_per_rpc={wanted // MIB}M", where,
                     "fewer and larger RPCs, fewer seeks on disks; each RPC in flight uses more memory on servers")
    elif direction == "write":
        if not parts or any(not part.job.is_small_io(Classes()) for part in parts):
            yield Advice(f"lctl set_param osc.{fsname}-OST*.max_dirty_mb=MEGABYTES", where,
                         "with 4 times max_rpcs_in_flight times the size of an RPC, a client can gather full RPCs")
        yield Advice("write whole stripes, do not fsync after each record, use a stripe size of at least one RPC",
                     "in the application", "an early fsync or lock revocation sends the data in small RPCs")
    elif any(client.read_ahead.get("hits", 0.0) >= client.read_ahead.get("misses", 0.0)  # they read in sequence
             for client in clients) and not all(
            client.read_ahead_file_bytes >= RPCS_IN_WINDOW * rpc_bytes for client in clients):
        yield Advice(f"lctl set_param llite.{fsname}-*.max_read_ahead_per_file_mb="
                     f"{RPCS_IN_WINDOW * rpc_bytes / (1 << 20):.0f}", where,
                     "a stream reads ahead in full RPCs only if the window spans several RPCs")


POLICY = Policy("rpc-size", Settings, find)
