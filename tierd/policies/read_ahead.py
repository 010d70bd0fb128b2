"""Read-ahead with a low hit rate: processes wait for each page, or clients fetch pages that no process reads.

The counters of ``llite.*.read_ahead_stats`` show the cause (names as of Lustre 2.16):

* ``hit_max_readahead_issue``: the mount's limit ``max_read_ahead_mb`` was reached;
* ``read_but_discarded``: pages were read ahead and discarded before they were used;
* ``readpage_not_consecutive``: reads are not sequential. Lustre detects a fixed stride; since 2.14 also one that is not
  aligned to pages, which raised the hits of IOR's hard read from 9% to 88% (DDN, 2022). It cannot predict random reads.

The first page of a file of at most 2 MiB is always a miss; Lustre then reads the whole file. No setting changes that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tierd.detect.view import View, client_names
from tierd.model import Advice, ClientLoad, Finding
from tierd.policies.protocol import Common, Policy, edge
from tierd.text import percent
from tierd.validators import Positive, Share

MIB = 1 << 20
WHOLE_READ_BYTES = 2 << 20
"""Lustre reads files up to this size ahead as a whole (``max_read_ahead_whole_mb``)."""
BUDGET, DISCARDED, JUMPING = "budget", "discarded", "jumping"
EVENTS = "hits", "misses", "read_but_discarded", "readpage_not_consecutive", "hit_max_readahead_issue"
LIMIT_SHARE = 0.05
"""How often the mount's limit was reached, per miss, from which it is the cause. A choice."""
DISCARDED_SHARE = 0.2
"""Share of discarded pages among hits and discarded pages from which discarding is the cause. A choice."""
JUMPING_SHARE = 0.5
"""Reads that are not sequential, per miss, from which the access pattern is the cause. A choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Share = 0.5
    """The finding begins below this share of hits among all pages read. DDN had 9% and 88%: a choice between."""
    min_pages_per_second: Positive = 50.0
    """Minimum rate of pages read on a client. Less costs nobody much: a choice."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    for (fsname, why), clients in view.by_cause(lambda client: cause(client, view, settings)).items():
        hits, misses, discarded, jumps, budget_used_up = (
            sum(client.read_ahead.get(event, 0.0) for client in clients) for event in EVENTS)
        # files that are read ahead as a whole; unknown if no job is known
        if max(view.sizes_read(f"{fsname}-").values(), default=float("inf")) <= WHOLE_READ_BYTES:
            continue
        yield POLICY.finding(
            view, f"read-ahead hits {percent(hits / max(hits + misses, 1))} of {hits + misses:.0f} pages on "
            f"{client_names(clients)}: {DESCRIPTIONS[why]}",
            {"hits": hits, "misses": misses, "discarded": discarded, "clients": len(clients), "jumps": jumps,
             "budget_used_up": budget_used_up}, subject=f"{fsname}: {why}", advice=advise(why, fsname, clients))


def cause(client: ClientLoad, view: View, settings: Settings) -> str:
    hits, misses, discarded, jumps, budget_used_up = (client.read_ahead.get(event, 0.0) for event in EVENTS)
    if (hits + misses) / client.seconds < settings.min_pages_per_second:
        return ""

    def low(why: str) -> bool:
        wasted = edge(1 - settings.enter, view, POLICY.name, "", f"{client.fsname}: {why}")
        return misses > wasted * (hits + misses)

    jumping, limited = jumps >= JUMPING_SHARE * max(misses, 1.0), budget_used_up >= LIMIT_SHARE * max(misses, 1.0)
    if limited and not jumping and low(BUDGET):
        return BUDGET
    if discarded >= DISCARDED_SHARE * max(hits + discarded, 1.0):
        return DISCARDED
    return JUMPING if jumping and low(JUMPING) else ""


DESCRIPTIONS = {
    BUDGET: "the mount reaches its limit max_read_ahead_mb",
    DISCARDED: "clients discard pages before any process reads them",
    JUMPING: "reads are random, or have a stride that Lustre does not detect",
}


def advise(why: str, fsname: str, clients: Sequence[ClientLoad]) -> Iterator[Advice]:
    where = f"on {client_names(clients)}"
    most = max(client.read_ahead_bytes for client in clients) / MIB
    per_file = max(client.read_ahead_file_bytes for client in clients) / MIB
    if why == BUDGET:
        yield Advice(f"lctl set_param llite.{fsname}-*.max_read_ahead_mb={2 * most:.0f}" if most else
                     f"lctl set_param llite.{fsname}-*.max_read_ahead_mb=MEGABYTES (twice the present value)", where,
                     "several streams can read ahead at the same time; uses up to that much memory, at most half of "
                     "the node's memory")
    elif why == DISCARDED:
        if not 0 < per_file <= 1:
            half = f"{max(per_file / 2, 1):.0f}" if per_file else "MEGABYTES (half)"
            yield Advice(f"lctl set_param llite.{fsname}-*.max_read_ahead_per_file_mb={half}", where,
                         "reads fewer unused bytes from the disks")
        yield Advice(f"lctl get_param llite.{fsname}-*.max_cached_mb", where,
                     "if the cache is full, it is too small for the data: add memory, or run fewer readers")
    else:
        yield Advice("lctl get_param version", where,
                     "releases before 2.14 do not detect a stride that is not aligned to pages; 2.14 raised the hits "
                     "of IOR's hard read from 9% to 88%")
        yield Advice("posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), larger reads, or data stored in the order of access",
                     "in the application", "Lustre cannot predict random reads: each read takes the full latency")


POLICY = Policy("read-ahead", Settings, find)
