"""From the inbox to the queue: what people and robinhood ordered becomes acts, at the beginning of a cycle."""

from __future__ import annotations

from lustre.filesystem import Filesystem
from tierd.act.gate import Gate
from tierd.act.inbox import Inbox
from tierd.act.orders import SUBMISSION, Intent, Order, intent
from tierd.clock import Clock
from tierd.config import Settings
from tierd.cycle.loop import Daemon
from tierd.desk import patience
from tierd.text import quoted

TAKEN_A_CYCLE = 500
"""Submitted paths made into actions in one cycle: each is a few requests to an MDT."""


class Intake:
    """Takes orders in, as far as acts may be begun."""

    def __init__(self, daemon: Daemon, gate: Gate, inbox: Inbox, filesystem: Filesystem, settings: Settings,
                 clock: Clock) -> None:
        self._daemon = daemon
        self._gate = gate
        self._inbox = inbox
        self._filesystem = filesystem
        self._settings = settings
        self._clock = clock

    def take_in(self) -> None:
        """At the beginning of a cycle: what was ordered goes into the queue; nothing while tierd is held back."""
        if self._gate.stance.held or self._gate.stance.draining:
            return
        handed_over: dict[tuple[str, str, str], Intent] = {}
        waiting = self._inbox.take(TAKEN_A_CYCLE)
        for order, found in waiting:
            try:
                made = found or self.made(order)
            except OSError as error:
                made = Intent()
                made.left_out[error.strerror or str(error)] += 1
            if order.kind == SUBMISSION:
                handed_over.setdefault((order.by, order.direction, order.reason), Intent()).add(made)
            else:
                self._daemon.carry_out(order.kind, order.by, order.what, made)
        for (by, direction, reason), made in handed_over.items():
            because = f" ({quoted(reason)})" if reason else ""
            self._daemon.carry_out(SUBMISSION, by, f"{by} hands over files to {direction}{because}", made)
        if waiting:
            self._inbox.done()

    def made(self, order: Order) -> Intent:
        """What an order comes to at present: one file, or a directory as far as there is time."""
        now = self._clock.now
        until = float("inf") if order.kind == SUBMISSION else now() + patience.PATIENCE_SECONDS
        return intent(order, self._filesystem, self._settings, now, until)
