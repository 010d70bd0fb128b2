"""Statahead that foresees wrongly: the client asks the MDT for attributes of files that nobody then looks at.

A thread that hits less than four times for each miss gives up and counts as wrong (``statahead_stats``). A thread that
gives up early has cost next to nothing: where the release counts entries (2.16), those that were missed decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Lt

from tierd.detect.advice import by_cause, client_names, total_over
from tierd.detect.plugin import Common, Detector, View
from tierd.model import Advice, ClientLoad, Evidence, Finding
from tierd.text import percent

WASTE = "waste"


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Annotated[float, Gt(0), Lt(1)] = 0.3
    """Share of statahead threads that gave up, or of entries foreseen in vain, to begin."""
    leave: Annotated[float, Gt(0), Lt(1)] = 0.2
    """The same, to go on."""
    min_started: Annotated[int, Ge(1)] = 10
    """Threads started between two looks at a client, where the release counts no entries."""
    min_misses: Annotated[int, Ge(1)] = 1000
    """Entries missed (2.16 and newer), or it is not worth a word, however many threads gave up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StataheadEvidence(Evidence):
    """Events of ``statahead_stats``, summed over the clients."""

    started: float
    """Threads."""
    wrong: float
    """Threads that gave up."""
    hits: float
    """Entries; 0 before Lustre 2.16."""
    misses: float
    """Entries; 0 before Lustre 2.16."""
    clients: int


def detect(view: View, settings: Settings) -> Iterator[Finding]:
    """A finding for each file system, naming the clients."""
    for (fsname, why), clients in by_cause(view, lambda client: wasteful(client, view, settings)).items():
        started, wrong, hits, misses = (total_over(clients, lambda c, n=name: c.statahead.get(n, 0.0))  # type: ignore[misc]
                                        for name in ("started", "wrong", "hits", "misses"))
        most = max(client.statahead_max for client in clients)
        entries = f" and {misses:.0f} of {hits + misses:.0f} entries were missed" if hits + misses else ""
        less = max(most / 4, 8)
        yield Finding(
            DETECTOR.name,
            view.now,
            "",
            "",
            (),
            f"{wrong:.0f} of {started:.0f} statahead threads gave up{entries} "
            f"({percent(waste(started, wrong, hits, misses))}) on {client_names(clients)}",
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
                            "fewer requests to the MDT for nothing; listings that are foreseen well "
                             "get a little slower",
                        )
                    ]
                ),
                Advice(
                    f"lctl set_param llite.{fsname}-*.statahead_max=0",
                    f"on {client_names(clients)}, if it stays so",
                    "switches it off; ls -l of large directories then waits for each file",
                ),
            ),
        )


def wasteful(client: ClientLoad, view: View, settings: Settings) -> str:
    """``waste`` for a client where statahead is in vain, else ""."""
    started, wrong, hits, misses = (client.statahead.get(n, 0.0) for n in ("started", "wrong", "hits", "misses"))
    if misses < settings.min_misses if hits + misses else started < settings.min_started:
        return ""
    held = (DETECTOR.name, "", f"{client.fsname}: {WASTE}") in view.active
    edge = settings.leave if held else settings.enter
    return WASTE if waste(started, wrong, hits, misses) >= edge else ""


def waste(started: float, wrong: float, hits: float, misses: float) -> float:
    """Share that was in vain: of the entries where they are counted, else of the threads.

    >>> waste(42, 1, 27088, 107) < 0.03, waste(10, 5, 0, 0), waste(10, 5, 90, 10)
    (True, 0.5, 0.1)
    """
    if hits + misses:
        return misses / (hits + misses)
    return wrong / started if started else 0.0


DETECTOR = Detector("statahead-waste", Settings, detect)
