"""Statahead with a low hit rate, which fetches attributes of files that no process requests; and batches that are off
although nearly all entries are used, so that each of them costs an RPC.

A thread with fewer than four hits per miss stops and counts as wrong (``statahead_stats``). A thread that stops early
costs almost nothing. If the release counts entries (2.16 and newer), the missed entries decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from tierd.advised import GOOD_STATAHEAD_HITS, STATAHEAD_BATCH
from tierd.detect.advice import by_cause, client_names, total_over
from tierd.detect.view import View
from tierd.model import Advice, ClientLoad, Evidence, Finding
from tierd.policies.protocol import Common, Policy
from tierd.text import percent

WASTE, UNBATCHED = "waste", "unbatched"


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Annotated[float, Gt(0), Lt(1)] = 0.3
    """The finding begins at this share of wrong statahead threads, or of missed entries."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.2
    """The finding ends below this share."""
    min_started: Annotated[int, Ge(1)] = 10
    """Minimum number of threads started between two readings of a client, if the release counts no entries."""
    min_misses: Annotated[int, Ge(1)] = 1000
    """Minimum number of missed entries (2.16 and newer)."""
    min_hits: Annotated[int, Ge(1)] = 10_000
    """Minimum number of used entries between two readings of a client from which batches are advised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StataheadEvidence(Evidence):
    """Events of ``statahead_stats``, summed over the clients."""

    started: float
    """Statahead threads started."""
    wrong: float
    """Statahead threads that stopped because of a low hit rate."""
    hits: float
    """Entries; 0 before Lustre 2.16."""
    misses: float
    """Entries; 0 before Lustre 2.16."""
    clients: int


def find(view: View, settings: Settings) -> Iterator[Finding]:
    """One finding per file system and cause, with the clients."""
    yield from unbatched(view, settings)
    for (fsname, why), clients in by_cause(view, lambda client: wasteful(client, view, settings)).items():
        started, wrong, hits, misses = (total_over(clients, lambda c, n=name: c.statahead.get(n, 0.0))  # type: ignore[misc]
                                        for name in ("started", "wrong", "hits", "misses"))
        most = max(client.statahead_max for client in clients)
        entries = f"; {misses:.0f} of {hits + misses:.0f} entries were missed" if hits + misses else ""
        less = max(most / 4, 8)
        yield Finding(
            POLICY.name,
            view.now,
            "",
            "",
            (),
            f"{wrong:.0f} of {started:.0f} statahead threads stopped because of a low hit rate{entries} "
            f"({percent(waste(started, wrong, hits, misses))}), on {client_names(clients)}",
            StataheadEvidence(started=started, wrong=wrong, hits=hits, misses=misses, clients=len(clients)),
            advice_only=True,
            subject=f"{fsname}: {why}",
            advice=(
                *(
                    []
                    if 0 < most <= less
                    else [
                        Advice(
                            f"lctl set_param llite.{fsname}-*.statahead_max={less if most else 32:.0f}",
                            f"on {client_names(clients)}",
                            "fewer useless requests to the MDT; listings with a good hit rate become slightly slower",
                        )
                    ]
                ),
                Advice(
                    f"lctl set_param llite.{fsname}-*.statahead_max=0",
                    f"on {client_names(clients)}, if that does not help",
                    "disables statahead; ls -l of a large directory then sends one request after the other",
                ),
            ),
        )


def unbatched(view: View, settings: Settings) -> Iterator[Finding]:
    """Clients whose statahead hits, with batches that are off."""
    for (fsname, why), clients in by_cause(view, lambda client: without_batches(client, view, settings)).items():
        started, wrong, hits, misses = (total_over(clients, lambda c, n=name: c.statahead.get(n, 0.0))  # type: ignore[misc]
                                        for name in ("started", "wrong", "hits", "misses"))
        yield Finding(
            POLICY.name, view.now, "", "", (),
            f"statahead fetched {hits + misses:.0f} entries one by one, {percent(hits / (hits + misses))} of them were "
            f"used: statahead_batch_max is off on {client_names(clients)}",
            StataheadEvidence(started=started, wrong=wrong, hits=hits, misses=misses, clients=len(clients)),
            advice_only=True, subject=f"{fsname}: {why}",
            advice=(Advice(f"lctl set_param llite.{fsname}-*.statahead_batch_max={STATAHEAD_BATCH}",
                           f"on {client_names(clients)}",
                           "ls -l and find take about half of the time: getattr of a million files took 10.1 s without "
                           "batches, 5.4 s with them (DDN 2022). A server before 2.16 answers one by one as before"),),
        )


def without_batches(client: ClientLoad, view: View, settings: Settings) -> str:
    """``unbatched`` for a client that would gain from batches, else ""."""
    hits, misses = (client.statahead.get(name, 0.0) for name in ("hits", "misses"))
    if client.statahead_batch is None or client.statahead_batch > 1 or hits < settings.min_hits:
        return ""
    return UNBATCHED if hits / (hits + misses) >= GOOD_STATAHEAD_HITS else ""


def wasteful(client: ClientLoad, view: View, settings: Settings) -> str:
    """``waste`` for a client with a low hit rate of statahead, else ""."""
    started, wrong, hits, misses = (client.statahead.get(n, 0.0) for n in ("started", "wrong", "hits", "misses"))
    if misses < settings.min_misses if hits + misses else started < settings.min_started:
        return ""
    held = (POLICY.name, "", f"{client.fsname}: {WASTE}") in view.active
    edge = settings.leave if held else settings.enter
    return WASTE if waste(started, wrong, hits, misses) >= edge else ""


def waste(started: float, wrong: float, hits: float, misses: float) -> float:
    """Share of missed entries; share of wrong threads if the release counts no entries.

    >>> waste(42, 1, 27088, 107) < 0.03, waste(10, 5, 0, 0), waste(10, 5, 90, 10)
    (True, 0.5, 0.1)
    """
    if hits + misses:
        return misses / (hits + misses)
    return wrong / started if started else 0.0


POLICY = Policy("statahead-waste", Settings, find)
