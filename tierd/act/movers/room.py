"""Whether the destination takes a file: pools with members, room that stays free, and the owner's quota.

A move made by root ignores quotas, and an empty pool takes a file and puts it anywhere. So both are asked before.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lustre.calls import Quota
from lustre.filesystem import Space
from lustre.layout import Layout
from tierd.act.movers.checks import Refusal
from tierd.act.movers.facts import Facts
from tierd.act.movers.outcome import Move

USER, GROUP, PROJECT = 0, 1, 2
_NO_QUOTAS = {errno.ESRCH, errno.ENOENT, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL}
"""What Lustre answers where quotas are not enforced, or the release has none for pools."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where files may go. Asked anew for every file: others fill pools too."""

    pools: Callable[[], Mapping[str, tuple[str, ...]]]
    space: Callable[[], Mapping[str, Space]]
    quota: Callable[[int, int, str], Quota]
    """Of an owner, by kind (user, group, project), number, and pool ("" for the file system)."""
    keep_free: float = 0.05
    """Part of a pool that stays free."""


def refusal(move: Move, facts: Facts, destination: Destination) -> Refusal | None:
    """Why it does not fit there; None when it does."""
    pools, space = destination.pools(), destination.space()
    for pool, needed_bytes in needed(move.layout, facts.status.size_bytes).items():
        targets = pools.get(pool)
        if targets is None:
            return Refusal("no-such-pool", f"there is no pool {pool!r}")
        if not targets:
            return Refusal("empty-pool", f"pool {pool!r} has no targets: Lustre would put the file anywhere")
        if any(c.pool == pool and not c.overstriped and c.stripe_count > len(targets) for c in move.layout.components):
            return Refusal("wanted-layout", f"more stripes than the {len(targets)} targets of pool {pool!r}")
        rooms = [space[target] for target in targets if target in space]
        size_bytes = sum(room.size_bytes for room in rooms)
        avail_bytes = sum(room.avail_bytes for room in rooms)
        if avail_bytes - needed_bytes < size_bytes * destination.keep_free:
            return Refusal("room", f"pool {pool!r} has {avail_bytes} bytes left and keeps {destination.keep_free:.0%}")
        if all(room.avail_bytes <= needed_bytes for room in rooms):
            return Refusal("room", f"no target of pool {pool!r} has {needed_bytes} bytes")
        over = _over_quota(facts, pool, needed_bytes, destination)
        if over is not None:
            return over
    return None


def needed(layout: Layout, size_bytes: int) -> dict[str, int]:
    """Bytes of a file of that size that the layout puts into each pool; pools it merely names are there with 0."""
    found: dict[str, int] = {}
    for component in layout.components:
        if not component.on_mdt:
            end = size_bytes if component.extent_end is None else min(component.extent_end, size_bytes)
            found[component.pool] = found.get(component.pool, 0) + max(0, end - component.extent_start)
    return found


def _over_quota(facts: Facts, pool: str, needed_bytes: int, destination: Destination) -> Refusal | None:
    """While both copies exist the file counts twice for its owner, so it must fit once more."""
    owners = ((USER, "user", facts.status.uid), (GROUP, "group", facts.status.gid), (PROJECT, "project", facts.project))
    for kind, word, owner in owners:
        for place in ("", pool) if owner else ():
            try:
                room_bytes = destination.quota(kind, owner, place).room_bytes()
            except OSError as error:
                if error.errno in _NO_QUOTAS:
                    continue
                return Refusal("quota", f"quota of {word} {owner} cannot be read: {error}")
            if room_bytes is not None and room_bytes < needed_bytes:
                where = f" in pool {place!r}" if place else ""
                return Refusal("quota", f"{word} {owner} has {room_bytes} bytes of quota left{where}")
    return None
