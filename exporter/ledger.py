"""Sums of counters over many targets that never decrease, even when single targets are reset or vanish.

A target's counters start at zero when its file is cleared, its client is remounted or its server fails over. A target
may also vanish and return. Prometheus handles a reset of one series, but not a reset inside a sum. The ledger therefore
remembers the last values of each target and credits only growth:

* the first pass credits everything, so a sum starts as the sum of the files;
* a new target is credited in full, because it counted everything since the last pass;
* a target that was present but unreadable is remembered without credit, because the time of its activity is unknown;
* a counter that decreased, or a new ``start_time``, is a reset: its present value is credited in full;
* a target that vanished keeps its contribution;
* a counter that grew by more than any target can do in the time (``MAX_PER_SECOND``), or to more than a counter can
  hold, is left out and counted in ``implausible``, and the sum continues from the last plausible value.
  If the next reading continues from the new value instead, the counter was right, and growth counts from there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from exporter import clock as clocks
from exporter.clock import Clock
from lustre.formats.compiled import grow
from lustre.formats.header import WRAPPED

G = TypeVar("G", bound=Hashable)
K = TypeVar("K", bound=Hashable)
MAX_PER_SECOND = 1 << 40
"""Growth of a counter of one target in a second above which it is implausible: a terabyte, or the waiting time in
microseconds of a million requests at a time."""
MAX_FIRST = 1 << 62
"""Limit on a value whose counter was not seen before."""
SPARE = 1024
"""Number of vanished members to remember, in addition to the number of present members."""


class _Member(Generic[G, K]):
    __slots__ = ("credited", "group", "keys", "listed_at", "parked", "seen_at", "start", "suspect", "values", "whole")

    def __init__(self, group: G | None, listed_at: int) -> None:
        self.group = group
        self.listed_at = listed_at
        """The pass in which the member first appeared."""
        self.seen_at = 0
        """The pass in which the member was last credited; 0 means never."""
        self.credited = 0.0
        """Time of the last credit."""
        self.start = b""
        self.keys: Sequence[K] = ()
        self.values: Sequence[int] = ()
        self.parked: dict[K, int] = {}
        """Last values of counters that the file does not show now."""
        self.suspect: dict[K, int] = {}
        """Implausible values of the last reading. ``values`` has the last plausible ones in their place, because the
        next reading may be plausible again."""
        self.whole = True


class Ledger(Generic[G, K]):
    """Members (targets, jobs) belong to groups; a group's totals are sums over its members, by key."""

    def __init__(self, clock: Clock = clocks.monotonic) -> None:
        self.implausible = 0
        """Number of implausible values that were left out."""
        self._clock = clock
        self._now = 0.0
        self._members: dict[str, _Member[G, K]] = {}
        self._totals: dict[G, dict[K, int]] = {}
        self._growth: dict[tuple[G, int], tuple[Sequence[K], list[int]]] = {}
        """Growth that is not in the totals yet, by group and identity of the keys, for members with equal keys."""
        self._groups: frozenset[G] = frozenset()
        self._present: Mapping[str, G | None] | None = None
        self._pass = 0

    @property
    def groups(self) -> frozenset[G]:
        return self._groups

    def totals(self, group: G) -> Mapping[K, int]:
        """Return the sums over the present and past members of a group."""
        self._settle()
        return self._totals.get(group, {})

    def every(self) -> Mapping[G, Mapping[K, int]]:
        """Return the totals of all groups, including groups without a present member."""
        self._settle()
        return self._totals

    def begin(self, members: Mapping[str, G | None]) -> None:
        """Start a pass with the present members and their groups. A member without a group has no sum. If ``members``
        is the same object as in the previous pass, nothing has changed.
        """
        self._pass += 1
        self._now = self._clock()
        if members is self._present:
            return
        self._present = members
        self._groups = frozenset(group for group in members.values() if group is not None)
        for name, group in members.items():
            member = self._members.get(name)
            if member is None:
                self._members[name] = _Member(group, self._pass)
            elif member.group != group:
                self.move(name, group)
        if len(self._members) > 2 * len(members) + SPARE:
            self._forget(members)

    def move(self, name: str, group: G | None) -> None:
        """Move a present member to another group. Only its growth from this pass on counts there. Use it for a few of
        many members. It does not update ``groups``.
        """
        member = self._members[name]
        member.group = group
        member.parked |= zip(member.keys, member.values, strict=True)
        member.keys, member.values = (), ()

    def credit(self, name: str, start: bytes, keys: Sequence[K], values: Sequence[int], *, whole: bool = True) -> None:
        """Credit the values of a member in this pass. Equal ``keys`` should be one object in all passes. ``whole`` is
        False if part of the file was not understood. A counter that appears later may then be old.
        """
        member = self._members[name]
        start = start or member.start  # a file truncated in its header has no start time
        most = MAX_FIRST
        if member.seen_at:
            most = min(MAX_FIRST, int(max(1.0, self._now - member.credited) * MAX_PER_SECOND))
        elif member.listed_at == self._pass:  # a new member: its values are all growth
            member.start, member.keys, member.values = start, keys, (0,) * len(keys)
        if keys is member.keys and start == member.start and self._grow(member, keys, values, most):
            member.values = values
            if member.suspect:
                member.suspect = {}
        else:
            member.values = self._credit_with_care(member, start, keys, values, most)
            member.start, member.keys = start, keys
        member.seen_at, member.whole, member.credited = self._pass, whole, self._now

    def _credit_with_care(
        self, member: _Member[G, K], start: bytes, keys: Sequence[K], values: Sequence[int], most: int
    ) -> Sequence[int]:
        """Credit each counter by itself. Returns the values from which the next growth counts."""
        known = member.parked | dict(zip(member.keys, member.values, strict=True))
        suspect, member.suspect = member.suspect, {}
        first = member.seen_at == 0
        if member.start and start != member.start and not first:
            known, suspect, new_ones_count = {}, {}, True
        else:
            new_ones_count = member.listed_at == self._pass if first else member.whole
        kept: list[int] = []
        deltas: list[int] = []
        for key, value in zip(keys, values, strict=True):
            before = known.get(key, 0)
            delta = value - before if value >= before else value
            if value >= WRAPPED or delta > (most if key in known else MAX_FIRST):
                member.suspect[key] = value
                continued = value < WRAPPED and 0 <= value - suspect.get(key, value + 1) <= most
                delta = value - suspect[key] if continued else 0
                self.implausible += not continued
                kept.append(before)
            else:
                kept.append(value)
            deltas.append(delta if key in known or new_ones_count else 0)
        if member.group is not None:
            self._add(member.group, keys, deltas)
        present = set(keys)
        member.parked = {key: value for key, value in known.items() if key not in present}
        return kept

    def _grow(self, member: _Member[G, K], keys: Sequence[K], values: Sequence[int], most: int) -> bool:
        """Credit growth quickly. If a counter decreased or grew by more than ``most``, returns False."""
        if member.group is None:
            return grow([0] * len(keys), member.values, values, most)
        where = member.group, id(keys)
        growth = self._growth.get(where)
        if growth is None:
            growth = self._growth[where] = keys, [0] * len(keys)
        return grow(growth[1], member.values, values, most)

    def _settle(self) -> None:
        for (group, _), (keys, deltas) in self._growth.items():
            self._add(group, keys, deltas)
        self._growth.clear()

    def _add(self, group: G, keys: Sequence[K], deltas: Iterable[int]) -> None:
        totals = self._totals.setdefault(group, {})
        for key, delta in zip(keys, deltas, strict=True):
            totals[key] = totals.get(key, 0) + delta

    def forget(self, name: str) -> None:
        """Forget an absent member, so that it counts as new if it returns."""
        if self._present is None or name not in self._present:
            self._members.pop(name, None)

    def _forget(self, members: Mapping[str, G | None]) -> None:
        gone = sorted((m.seen_at, name) for name, m in self._members.items() if name not in members)
        for _, name in gone[: len(self._members) - len(members) - SPARE]:
            del self._members[name]
        if len(self._totals) > len(self._groups) + SPARE:  # a container may mount at a path of its own each time
            kept = self._groups | {member.group for member in self._members.values()}
            self._totals = {group: totals for group, totals in self._totals.items() if group in kept}
