"""What waits over a restart, moves and orders alike, and what is said of it: at the start, and at the end."""

from __future__ import annotations

from collections.abc import Iterator

from tierd.act.gate import Gate
from tierd.act.inbox import Inbox
from tierd.act.left_over import out_of_date
from tierd.config import Settings


def taken_over(gate: Gate, inbox: Inbox, fsname: str, settings: Settings, now: float) -> Iterator[str]:
    """What waited when tierd ended waits again, or is told of."""
    for order, why in inbox.reload(lambda stamp: out_of_date(stamp, fsname, settings, now)):
        gate.not_taken_up[why] += 1
        yield f"not taken up after a restart: {order.what}: {why}"
    if gate.waiting or len(inbox):
        yield (f"{gate.waiting} moves and {len(inbox)} orders have waited since before the start: "
               "each is looked at again before it goes on")


def left_behind(gate: Gate, inbox: Inbox) -> str:
    """What waits now and stands in the journal for the next start; "" for nothing."""
    if not (gate.waiting or len(inbox)):
        return ""
    lost = f", but {gate.not_kept} of them are lost" if gate.not_kept else ""
    return f"{gate.waiting} moves and {len(inbox)} orders wait; the journal keeps them for the next start{lost}"
