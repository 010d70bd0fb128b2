"""RPCs that could be larger: a low limit that most of them reach, or large ones allowed and hardly any sent.

The first is a setting of the clients and of the targets; the second is what the application does, or memory too scarce
to gather an RPC's worth of pages before it must go. Nothing is told where the files themselves are as small as the
RPCs: a file of 1 MiB that is read whole is read in one RPC of 1 MiB.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from tierd.detect.advice import client_names, recently_seen, rpcs_saved, targets_of_pool, traffic
from tierd.detect.plugin import Common, Detector, View
from tierd.detect.profile import Classes, is_small_io
from tierd.model import Advice, ClientLoad, Evidence, Finding, RpcLoad
from tierd.text import percent, quoted

PAGE_BYTES = 4096
"""Of x86; on other machines the figures in bytes are too low, the shares are not."""
LARGE_BYTES = 4 << 20
"""Of an RPC after the advice."""
RPCS_IN_WINDOW = 4
"""RPCs that a read-ahead window must span for a stream to fill them."""
AT_LIMIT, UNFILLED = "limit", "unfilled"


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    full_share: Annotated[float, Gt(0), Lt(1)] = 0.8
    """Share of full RPCs that shows that the limit is what keeps them small."""
    large_pages: Annotated[int, Ge(1)] = 1024
    """A limit of so many pages (4 MiB) is no low one."""
    enter_fill: Annotated[float, Gt(0), Lt(1)] = 0.25
    """Mean RPC as a share of the limit, below which they count as unfilled."""
    leave_fill: Annotated[float, Gt(0), Lt(1)] = 0.35
    """The same, to go on."""
    min_bytes_per_second: Annotated[float, Gt(0)] = 10e6
    """What a client moves in them; less is not worth a word."""
    recent_seconds: Annotated[float, Gt(0)] = 60.0
    """What jobs' files are like is told from their last so many seconds."""
    min_saved: Annotated[float, Gt(0), Lt(1)] = 0.3
    """Share of the RPCs of the jobs there that larger ones would save, at the least, given the size of their files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcSizeEvidence(Evidence):
    """Sizes of bulk RPCs to one pool in one direction."""

    mean_rpc_bytes: float
    max_rpc_bytes: float
    """The lowest limit of the clients (``max_pages_per_rpc``)."""
    full_share: float
    """RPCs as large as the limit."""
    rpcs: float
    clients: int


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """A finding for each file system, pool, direction and cause."""
    found: defaultdict[tuple[str, str, str, str], list[tuple[ClientLoad, RpcLoad]]] = defaultdict(list)
    for client in recently_seen(view):
        for load in client.rpcs:
            if load.kind == "osc" and (why := cause(client, load, view, settings)):
                found[client.fsname, load.pool, load.direction, why].append((client, load))
    for subject, pairs in sorted(found.items()):
        advice = tuple(advise(subject, pairs, view, settings))
        if advice:
            yield finding(subject, pairs, view, advice)


def mean_pages(load: RpcLoad) -> float:
    """Pages of an RPC on average, by the upper bounds of the histogram.

    >>> mean_pages(RpcLoad("osc", "hdd", "write", pages={1: 50, 256: 50}))
    128.5
    """
    sent = sum(load.pages.values())
    return sum(pages * count for pages, count in load.pages.items()) / sent if sent else 0.0


def full_share(load: RpcLoad) -> float:
    """Share of the RPCs that were as large as may be; their bucket's upper bound is at the limit or above it."""
    sent = sum(load.pages.values())
    return sum(n for pages, n in load.pages.items() if pages >= load.max_pages) / sent if sent else 0.0


def cause(client: ClientLoad, load: RpcLoad, view: View, settings: Settings) -> str:
    """Why the RPCs of one client to one pool are small, or ""."""
    mean = mean_pages(load)
    if not load.max_pages or sum(load.pages.values()) * mean * PAGE_BYTES < (
            settings.min_bytes_per_second * client.seconds):
        return ""
    if load.max_pages < settings.large_pages and full_share(load) >= settings.full_share:
        return AT_LIMIT
    held = (DETECTOR.name, "", " ".join((client.fsname, load.pool, load.direction, UNFILLED))) in view.active
    return UNFILLED if mean < (settings.leave_fill if held else settings.enter_fill) * load.max_pages else ""


def finding(subject: tuple[str, str, str, str], pairs: Sequence[tuple[ClientLoad, RpcLoad]], view: View,
            advice: tuple[Advice, ...]) -> Finding:
    """What is told of one pool, direction and cause."""
    _, pool, direction, why = subject
    clients = [client for client, _ in pairs]
    limit = min(load.max_pages for _, load in pairs)
    rpcs = sum(sum(load.pages.values()) for _, load in pairs)
    mean = sum(mean_pages(load) * sum(load.pages.values()) for _, load in pairs) / rpcs
    at_limit = sum(full_share(load) * sum(load.pages.values()) for _, load in pairs) / rpcs
    kib, most_kib = mean * PAGE_BYTES / 1024, limit * PAGE_BYTES / 1024
    words = (f"{percent(at_limit)} of {rpcs:.0f} {direction} RPCs are as large as may be, {most_kib:.0f} KiB"
             if why == AT_LIMIT else
             f"{direction} RPCs have {kib:.0f} KiB on average where {most_kib:.0f} KiB may be")
    to = f" to pool {quoted(pool)}" if pool else ""
    return Finding(
        DETECTOR.name, view.now, "", "", (), f"{words}{to}, on {client_names(clients)}",
        RpcSizeEvidence(mean_rpc_bytes=mean * PAGE_BYTES, max_rpc_bytes=limit * PAGE_BYTES, full_share=at_limit,
                        rpcs=rpcs, clients=len(clients)),
        advice_only=True, subject=" ".join(subject), advice=advice,
    )


def advise(subject: tuple[str, str, str, str], pairs: Sequence[tuple[ClientLoad, RpcLoad]], view: View,
         settings: Settings) -> Iterator[Advice]:
    """What to change; nothing where the files, or what is set already, leave nothing to win."""
    fsname, pool, direction, why = subject
    clients = [client for client, _ in pairs]
    where = f"on {client_names(clients)}"
    rpc_bytes = LARGE_BYTES if why == AT_LIMIT else min(load.max_pages for _, load in pairs) * PAGE_BYTES
    parts = list(traffic(view.profiles(settings.recent_seconds), targets_of_pool(view, fsname, pool), direction))
    saved = rpcs_saved(parts, rpc_bytes)
    if saved is not None and saved < settings.min_saved:
        return
    if why == AT_LIMIT:
        yield Advice("lctl set_param obdfilter.*.brw_size=4", "on all OSS first",
                     "targets then take RPCs of 4 MiB; clients learn of it when they connect anew")
        yield Advice(f"lctl set_param osc.{fsname}-OST*.max_pages_per_rpc=4M", where,
                     "fewer and larger RPCs, fewer seeks on disks; costs memory on servers for each RPC under way")
    elif direction == "write":
        if not parts or any(not is_small_io(part.job, Classes()) for part in parts):
            yield Advice(f"lctl set_param osc.{fsname}-OST*.max_dirty_mb=MEGABYTES", where,
                         "4 times max_rpcs_in_flight times the size of an RPC gives a client room to gather full ones")
        yield Advice("writes of whole stripes, no fsync after each record, a stripe size of an RPC or more",
                     "in the application", "what is synced or locked away early goes in small pieces")
    elif any(map(reads_in_sequence, clients)) and not all(
            client.read_ahead_file_bytes >= RPCS_IN_WINDOW * rpc_bytes for client in clients):
        yield Advice(f"lctl set_param llite.{fsname}-*.max_read_ahead_per_file_mb="
                     f"{RPCS_IN_WINDOW * rpc_bytes / (1 << 20):.0f}", where,
                     "a stream reads ahead in full RPCs when the window spans several")


def reads_in_sequence(client: ClientLoad) -> bool:
    """Whether read-ahead serves what a client reads, as far as is known; random reads stay small, whatever is set."""
    hits, misses = (client.read_ahead.get(name, 0.0) for name in ("hits", "misses"))
    return hits >= misses


DETECTOR = Detector("rpc-size", Settings, detect)
