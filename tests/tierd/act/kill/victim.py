"""The process that is killed: it moves files, sets a default, takes a move back, and sets the default back.

It imports once and then forks for each run, since a hundred interpreters would take a hundred starts.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from tests.tierd.act.gate_world import Clock
from tests.tierd.act.kill.remote import Remote, SteppedJournal, receive, send
from tests.tierd.act.movers.minilustre import FLASH, HDD
from tests.tierd.worlds import noise
from tierd.act.gate import Gate
from tierd.act.limits import Budget, CircuitBreaker
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.space_and_quota import Destination
from tierd.act.undo import Undo
from tierd.acts import ActKind, Outcome
from tierd.config.act import Limits, Rate
from tierd.model import Action, Finding

FINDING = Finding("noisy-neighbour", 1.0, "m", "s", ("lustre-OST0002",), "…", noise(), ("/d",))
NAMES = ("/a", "/b")


def work(lustre: socket.socket, journal_path: Path) -> None:
    """What tierd does in a few cycles."""
    filesystem, calls, steps = (Remote(lustre, name) for name in ("port", "calls", "steps"))
    filesystem.__dict__["fsname"] = "lustre"
    journal = SteppedJournal(journal_path)
    journal.steps = steps
    mover = LeaseMover(calls, Destination(filesystem.pools, filesystem.space, steps.quota))
    plenty = Rate(1e6, 1e12)
    budget = Budget(Limits(1e6, 1e12, per_pool=plenty, per_target=plenty), 1000.0)
    clock = Clock()
    gate = Gate(filesystem, mover, budget, CircuitBreaker(), journal, clock, False)
    finding = journal.add_finding(FINDING)
    gate.submit([Action(ActKind.SET_DEFAULT_LAYOUT, FLASH, "", FINDING.key, "/d"),
                 *(Action(ActKind.MIGRATE, FLASH, "", FINDING.key, "/", name, 9000) for name in NAMES)], finding)
    gate.default_layouts.set_next()
    gate.pump(2000.0)
    undo = Undo(filesystem, mover, journal, clock)
    for entry in journal.entries(Outcome.DONE):
        if entry.place in {"/a", "/d"}:
            undo(entry, "it did not help")


def main() -> None:
    """Fork a process for each requested run, and report how it ended."""
    control = socket.socket(fileno=int(sys.argv[1]))
    while True:
        try:
            journal_path = receive(control)
        except EOFError:
            return
        child = os.fork()
        if not child:
            try:
                work(control, journal_path)
                send(control, ("steps", "finished", ()))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        send(control, None)


if __name__ == "__main__":
    assert HDD  # what everything lies on before
    main()
