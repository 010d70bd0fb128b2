"""Statahead: a client that sees ``ls -l`` asks for the attributes of the names to come before it is asked for them.

One request a name, a window of them on the way; from 2.16 on many names go in one batched request. Sizes of files
with objects come from the OSTs: those are asked ahead too (asynchronous glimpse lock, AGL).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.changelog import Actor
from simulator.engine import Completion, Steps, gather
from simulator.namespace import Inode

if TYPE_CHECKING:
    from simulator.client import Client

NAMES_PER_READDIR = 16384
"""Names in one answer: 256 pages of 64."""
SEEN_BEFORE = 2
"""Names stat'ed in directory order before statahead starts."""


@dataclass(frozen=True, slots=True)
class StataheadSettings:
    """Tunables of ``llite.*``."""

    max_names: int = 128
    batch_max: int = 64
    """Names in one request (2.16 and later); 0: one request a name."""


@dataclass(slots=True)
class StataheadCounters:
    """``statahead_stats``."""

    total: int = 0
    wrong: int = 0
    agl_total: int = 0
    list_total: int = 0
    fname_total: int = 0
    hit_total: int = 0
    miss_total: int = 0


class Statahead:
    """One process walking through one directory."""

    def __init__(self, client: Client, names: Sequence[Inode], actor: Actor) -> None:
        self._client = client
        self._names = names
        self._actor = actor
        self._ready: dict[int, Completion] = {}
        self._asked = 0

    def stat(self, number: int) -> Steps[None]:
        """The attributes of one name, asked for ahead where that has begun."""
        client, counters = self._client, self._client.statahead
        began = client.engine.now
        if number == SEEN_BEFORE:
            counters.total += 1
            counters.list_total += 1
        if number >= SEEN_BEFORE:
            self._ask_ahead(number)
        if number in self._ready:
            counters.hit_total += 1
            yield self._ready.pop(number)
            yield client.jitter(0.000005)
        else:
            counters.miss_total += 1
            yield from client.names.attributes(self._names[number], self._actor)
        client.stats.tally("getattr", client.since(began))
        client.stats.tally("inode_permission", 1)

    def _ask_ahead(self, number: int) -> None:
        settings = self._client.settings.statahead
        if not settings.max_names:
            return
        last = min(number + settings.max_names, len(self._names))
        batch = settings.batch_max or 1
        self._asked = max(self._asked, number)
        while self._asked < last and (last - self._asked >= batch or last == len(self._names) or self._asked == number):
            some = range(self._asked, min(self._asked + batch, last))
            inodes = [self._names[i] for i in some]
            done = self._client.engine.spawn(self._fetch(inodes))
            self._ready.update(dict.fromkeys(some, done))
            self._asked = some.stop

    def _fetch(self, inodes: Sequence[Inode]) -> Steps[None]:
        client = self._client
        mdc = client.mdcs[inodes[0].mdt_index]
        yield from mdc.batch("getattr", len(inodes), self._actor.job_id)
        client.statahead.agl_total += sum(inode.layout is not None for inode in inodes)
        yield gather([client.engine.spawn(client.names.glimpse(inode, self._actor)) for inode in inodes])
