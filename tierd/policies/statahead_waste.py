"""Statahead with a low hit rate, which fetches attributes of files that no process requests; and batches that are off
although nearly all entries are used, so that each of them costs an RPC.

A thread with fewer than four hits per miss stops and counts as wrong (``statahead_stats``). A thread that stops early
costs almost nothing. If the release counts entries (2.16 and newer), the missed entries decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tierd.advised import GOOD_STATAHEAD_HITS, STATAHEAD_BATCH
from tierd.detect.view import View, client_names
from tierd.model import Advice, ClientLoad, Finding
from tierd.policies.protocol import Common, Policy, edge
from tierd.text import percent
from tierd.validators import Share

WASTE, UNBATCHED = "waste", "unbatched"
MIN_STARTED = 10
"""Minimum number of threads started between two readings of a client, if the release counts no entries. A choice."""
MIN_MISSES = 1000
"""Minimum number of missed entries (2.16 and newer). A choice."""
MIN_HITS = 10_000
"""Minimum number of used entries between two readings of a client from which batches are advised. A choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Share = 0.3
    """The finding begins at this share of wrong statahead threads, or of missed entries. A choice."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    for (fsname, why), clients in view.by_cause(lambda client: cause(client, view, settings)).items():
        started, wrong, hits, misses = counted(clients).values()
        every, where = hits + misses, f"on {client_names(clients)}"
        setting = f"lctl set_param llite.{fsname}-*.statahead"
        if why == UNBATCHED:
            words = (f"statahead fetched {every:.0f} entries one by one, {percent(hits / every)} of them were used: "
                     "statahead_batch_max is off")
            advice = [Advice(f"{setting}_batch_max={STATAHEAD_BATCH}", where,
                             "ls -l and find take about half the time: getattr of a million files took 10.1 s without "
                             "batches, 5.4 s with them (DDN 2022). A server before 2.16 still answers one by one")]
        else:
            entries = f"; {misses:.0f} of {every:.0f} entries were missed" if every else ""
            words = (f"{wrong:.0f} of {started:.0f} statahead threads stopped because of a low hit rate{entries} "
                     f"({percent(waste(started, wrong, hits, misses))}),")
            most = max(client.statahead_max for client in clients)
            less = max(most / 4, 8)
            advice = [] if 0 < most <= less else [Advice(
                f"{setting}_max={less if most else 32:.0f}", where,
                "fewer useless requests to the MDT; listings with a good hit rate become slightly slower")]
            advice.append(Advice(f"{setting}_max=0", f"{where}, if that does not help", "disables statahead; ls -l of "
                                 "a large directory then sends one request after another"))
        yield POLICY.finding(view, f"{words} {where}", {"started": started, "wrong": wrong, "hits": hits,
                                                        "misses": misses, "clients": len(clients)},
                             subject=f"{fsname}: {why}", advice=advice)


def cause(client: ClientLoad, view: View, settings: Settings) -> str:
    """What is wrong with the statahead of a client; "" if nothing is."""
    started, wrong, hits, misses = counted([client]).values()
    batches_off = client.statahead_batch is not None and client.statahead_batch <= 1
    if batches_off and hits >= MIN_HITS and hits / (hits + misses) >= GOOD_STATAHEAD_HITS:
        return UNBATCHED
    if misses < MIN_MISSES if hits + misses else started < MIN_STARTED:
        return ""
    least = edge(settings.enter, view, POLICY.name, "", f"{client.fsname}: {WASTE}")
    return WASTE if waste(started, wrong, hits, misses) >= least else ""


def counted(clients: Sequence[ClientLoad]) -> dict[str, float]:
    """Events, summed over the clients: threads, and entries where the release counts them."""
    return {name: sum(client.statahead.get(name, 0.0) for client in clients)
            for name in ("started", "wrong", "hits", "misses")}


def waste(started: float, wrong: float, hits: float, misses: float) -> float:
    """Share of missed entries; share of wrong threads if the release counts no entries.

    >>> waste(42, 1, 27088, 107) < 0.03, waste(10, 5, 0, 0), waste(10, 5, 90, 10)
    (True, 0.5, 0.1)
    """
    if hits + misses:
        return misses / (hits + misses)
    return wrong / started if started else 0.0


POLICY = Policy("statahead-waste", Settings, find)
