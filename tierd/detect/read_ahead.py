"""Read-ahead that does not hit: readers wait for each page, or pages are fetched that nobody reads.

The counters of ``llite.*.read_ahead_stats`` tell the causes apart (names as of Lustre 2.16):

* ``hit_max_readahead_issue``: the budget of the whole mount, ``max_read_ahead_mb``, was used up;
* ``read_but_discarded``: pages fetched ahead were thrown away before anybody read them;
* ``readpage_not_consecutive``: reads jump. A fixed stride is foreseen, one that does not fall on page borders since
  2.14, which took IOR's hard read from 9 to 88% of hits (DDN, 2022); random reads cannot be foreseen.

Of whole files of 2 MiB and less every first page is a miss, and Lustre reads the rest at once: no setting helps there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt, Lt

from tierd.detect.advice import WHOLE_READ_BYTES, by_cause, client_names, total_over, traffic
from tierd.detect.plugin import Common, Detector, View
from tierd.model import Advice, ClientLoad, Evidence, Finding
from tierd.text import percent

MIB = 1 << 20
BUDGET, DISCARDED, JUMPING = "budget", "discarded", "jumping"


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Annotated[float, Gt(0), Lt(1)] = 0.5
    """Hits among the pages read, below which it begins."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.7
    """Hits above which it ends."""
    min_pages_per_second: Annotated[float, Gt(0)] = 50.0
    """Pages read on a client, for its ratio to mean anything."""
    limit_share: Annotated[float, Gt(0), Lt(1)] = 0.05
    """Times the budget of the mount was used up, for each miss."""
    discarded_share: Annotated[float, Gt(0), Lt(1)] = 0.2
    """Pages thrown away unread, for each page that was hit or thrown away."""
    jumping_share: Annotated[float, Gt(0), Lt(1)] = 0.5
    """Reads that jump, for each miss."""
    recent_seconds: Annotated[float, Gt(0)] = 60.0
    """What jobs' files are like is told from their last so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAheadEvidence(Evidence):
    """Events of ``read_ahead_stats``, summed over the clients."""

    hits: float
    """Pages."""
    misses: float
    """Pages."""
    discarded: float
    """Pages that were read ahead and never used."""
    clients: int
    jumps: float
    """``readpage_not_consecutive``."""
    budget_used_up: float
    """``hit_max_readahead_issue``."""


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """A finding for each cause, naming its clients."""
    for (fsname, why), clients in by_cause(view, lambda client: cause(client, view, settings)).items():
        hits, misses = total_over(clients, lambda c: c.read_ahead.get("hits", 0)), total_over(
            clients, lambda c: c.read_ahead.get("misses", 0))
        discarded = total_over(clients, lambda c: c.read_ahead.get("read_but_discarded", 0))
        words, advice = DESCRIPTIONS[why], tuple(advise(why, fsname, clients))
        if not advice or only_small_files(fsname, view, settings):
            continue
        yield Finding(
            DETECTOR.name, view.now, "", "", (),
            f"read-ahead hits {percent(hits / max(hits + misses, 1))} of {hits + misses:.0f} pages read on "
            f"{client_names(clients)}: {words}",
            ReadAheadEvidence(
                hits=hits, misses=misses, discarded=discarded, clients=len(clients),
                jumps=total_over(clients, lambda c: c.read_ahead.get("readpage_not_consecutive", 0)),
                budget_used_up=total_over(clients, lambda c: c.read_ahead.get("hit_max_readahead_issue", 0))),
            advice_only=True, subject=f"{fsname}: {why}", advice=advice,
        )


def cause(client: ClientLoad, view: View, settings: Settings) -> str:
    """Why read-ahead serves a client badly, or "" where it does not."""
    events = client.read_ahead
    hits, misses, discarded = (events.get(name, 0.0) for name in ("hits", "misses", "read_but_discarded"))
    if (hits + misses) / client.seconds < settings.min_pages_per_second:
        return ""

    def low(why: str) -> bool:
        held = (DETECTOR.name, "", f"{client.fsname}: {why}") in view.active
        return hits < (settings.leave if held else settings.enter) * (hits + misses)

    jumps = events.get("readpage_not_consecutive", 0.0) >= settings.jumping_share * max(misses, 1.0)
    limited = events.get("hit_max_readahead_issue", 0.0) >= settings.limit_share * max(misses, 1.0)
    if limited and not jumps and low(BUDGET):
        return BUDGET
    if discarded >= settings.discarded_share * max(hits + discarded, 1.0):
        return DISCARDED
    return JUMPING if jumps and low(JUMPING) else ""


def only_small_files(fsname: str, view: View, settings: Settings) -> bool:
    """Whether all that jobs read are files so small that they are read ahead whole; False where no job is known."""
    targets = {target for window in view.windows for target, _ in window.loads if target.startswith(f"{fsname}-")}
    parts = list(traffic(view.profiles(settings.recent_seconds), targets, "read"))
    return bool(parts) and all(part.bytes_per_file <= WHOLE_READ_BYTES for part in parts)


DESCRIPTIONS = {
    BUDGET: "the budget of the mount is used up again and again",
    DISCARDED: "pages fetched ahead are thrown away unread",
    JUMPING: "reads jump, at random or by a stride that is not foreseen",
}


def advise(why: str, fsname: str, clients: Sequence[ClientLoad]) -> Iterator[Advice]:
    """What to change. Values are shown where the present one is known."""
    where = f"on {client_names(clients)}"
    most = max(client.read_ahead_bytes for client in clients) / MIB
    per_file = max(client.read_ahead_file_bytes for client in clients) / MIB
    if why == BUDGET:
        yield Advice(f"lctl set_param llite.{fsname}-*.max_read_ahead_mb={2 * most:.0f}" if most else
                     f"lctl set_param llite.{fsname}-*.max_read_ahead_mb=MEGABYTES (twice what it is)", where,
                     "streams of several processes no longer stop each other's read-ahead; costs that much memory, "
                     "half of the node's at the most")
    elif why == DISCARDED:
        if not 0 < per_file <= 1:
            half = f"{max(per_file / 2, 1):.0f}" if per_file else "MEGABYTES (half)"
            yield Advice(f"lctl set_param llite.{fsname}-*.max_read_ahead_per_file_mb={half}", where,
                         "fewer bytes are fetched for nothing, from disks others wait for")
        yield Advice(f"lctl get_param llite.{fsname}-*.max_cached_mb", where,
                     "if the cache is full there, it is too small for what is read: more memory, or fewer readers")
    else:
        yield Advice("lctl get_param version", where,
                     "before 2.14 a stride that does not fall on page borders is not foreseen; an update took IOR's "
                     "hard read from 9 to 88% of hits")
        yield Advice("posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), larger reads, or data ordered as they are read",
                     "in the application", "random reads cannot be foreseen: each costs the full latency")


DETECTOR = Detector("read-ahead", Settings, detect)
