"""What the detectors that look at clients share: which are worth a look, and how many of them are named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from tierd.detect.plugin import View
from tierd.facts import ClientLoad
from tierd.text import some

STALE_SECONDS = 900.0
"""A client that was looked at longer ago says nothing about now."""

Causes = Mapping[tuple[str, str], Sequence[ClientLoad]]
"""File system and cause to the clients it was seen on."""


def fresh(view: View) -> Iterator[ClientLoad]:
    """Clients of which something is known that is not old."""
    return (client for client in view.facts.clients if client.seconds > 0 and client.time > view.now - STALE_SECONDS)


def by_cause(view: View, cause_of: Callable[[ClientLoad], str]) -> Causes:
    """Clients with the same trouble together: an administrator sets a parameter for many, not for one."""
    found: defaultdict[tuple[str, str], list[ClientLoad]] = defaultdict(list)
    for client in fresh(view):
        if cause := cause_of(client):
            found[client.fsname, cause].append(client)
    return dict(sorted(found.items()))


def named(clients: Sequence[ClientLoad]) -> str:
    """The clients in a sentence."""
    names = list(dict.fromkeys(client.client for client in clients))
    return f"{'client' if len(names) == 1 else f'{len(names)} clients:'} {some(names)}"


def total(clients: Sequence[ClientLoad], count: Callable[[ClientLoad], float]) -> float:
    """Sum over clients."""
    return sum(map(count, clients))
