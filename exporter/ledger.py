"""Sums of counters over many targets that never decrease, even when single targets are reset or vanish.

A target's counters start at zero when its file is cleared, its client remounted or its server failed over; a target
may vanish and come back. Prometheus understands a reset of one series, not one hidden in a sum. So the ledger
remembers the last values of each target and credits only growth:

* the first pass credits everything, so a sum starts as the sum of the files;
* a new target is credited in full, because all it counted happened since the last pass;
* a target that was present but unreadable is remembered without credit, because the time of its activity is unknown;
* a counter that decreased, or a new ``start_time``, is a reset: its present value is credited in full;
* a target that vanished keeps its contribution.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from lustre.formats.compiled import grow

G = TypeVar("G", bound=Hashable)
K = TypeVar("K", bound=Hashable)
SPARE = 1024
"""Vanished members that are remembered in addition to the number of present ones."""


class _Member(Generic[G, K]):
    __slots__ = ("group", "keys", "listed_at", "parked", "seen_at", "start", "values", "whole")

    def __init__(self, group: G | None, listed_at: int) -> None:
        self.group = group
        self.listed_at = listed_at
        """The pass in which it first appeared."""
        self.seen_at = 0
        """The pass in which it was last credited; 0: never."""
        self.start = b""
        self.keys: Sequence[K] = ()
        self.values: Sequence[int] = ()
        self.parked: dict[K, int] = {}
        """Last values of counters that are not in the file at present."""
        self.whole = True


class Ledger(Generic[G, K]):
    """Members (targets, jobs) belong to groups; a group's totals are sums over its members, by key."""

    def __init__(self) -> None:
        self._members: dict[str, _Member[G, K]] = {}
        self._totals: dict[G, dict[K, int]] = {}
        self._growth: dict[tuple[G, int], tuple[Sequence[K], list[int]]] = {}
        """Growth that is not in the totals yet, by group and identity of the keys, for members with equal keys."""
        self._groups: frozenset[G] = frozenset()
        self._present: Mapping[str, G | None] | None = None
        self._pass = 0

    @property
    def groups(self) -> frozenset[G]:
        """Groups that have a member in this pass."""
        return self._groups

    def totals(self, group: G) -> Mapping[K, int]:
        """The sums over the members of the group, present and past."""
        self._settle()
        return self._totals.get(group, {})

    def every(self) -> Mapping[G, Mapping[K, int]]:
        """The totals of all groups, including those without a present member."""
        self._settle()
        return self._totals

    def begin(self, members: Mapping[str, G | None]) -> None:
        """Start a pass with the present members and their groups. A member without a group is only remembered.

        The mapping object of the previous pass means that nothing changed.
        """
        self._pass += 1
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
        """Move a present member to another group from this pass on. Its past does not count there.

        For few of many members; ``groups`` is not updated.
        """
        member = self._members[name]
        member.group = group
        member.parked |= zip(member.keys, member.values, strict=True)
        member.keys, member.values = (), ()

    def credit(self, name: str, start: bytes, keys: Sequence[K], values: Sequence[int], *, whole: bool = True) -> None:
        """Credit the values of a member in this pass. Equal ``keys`` should be one object in all passes.

        ``whole`` is False if part of its file was not understood: a counter that appears later may then be old.
        """
        member = self._members[name]
        start = start or member.start  # a file truncated in its header has no start time
        if member.listed_at == self._pass and member.seen_at == 0:  # a new member: all its values are growth
            member.start, member.keys, member.values = start, keys, (0,) * len(keys)
        if keys is member.keys and start == member.start and self._grow(member, keys, values):
            member.values, member.seen_at, member.whole = values, self._pass, whole
            return
        self._credit_with_care(member, start, keys, values)
        member.start, member.keys, member.values = start, keys, values
        member.seen_at, member.whole = self._pass, whole

    def _credit_with_care(self, member: _Member[G, K], start: bytes, keys: Sequence[K], values: Sequence[int]) -> None:
        known = member.parked | dict(zip(member.keys, member.values, strict=True))
        first = member.seen_at == 0
        if member.start and start != member.start and not first:
            known, new_ones_count = {}, True
        else:
            new_ones_count = member.listed_at == self._pass if first else member.whole
        if member.group is not None:
            deltas = [
                (value - known[key] if value >= known[key] else value) if key in known else value * new_ones_count
                for key, value in zip(keys, values, strict=True)
            ]
            self._add(member.group, keys, deltas)
        present = set(keys)
        member.parked = {key: value for key, value in known.items() if key not in present}

    def _grow(self, member: _Member[G, K], keys: Sequence[K], values: Sequence[int]) -> bool:
        """Credit growth fast. False, without any credit, if a counter decreased."""
        if member.group is None:
            return True
        where = member.group, id(keys)
        growth = self._growth.get(where)
        if growth is None:
            growth = self._growth[where] = keys, [0] * len(keys)
        return grow(growth[1], member.values, values)

    def _settle(self) -> None:
        for (group, _), (keys, deltas) in self._growth.items():
            self._add(group, keys, deltas)
        self._growth.clear()

    def _add(self, group: G, keys: Sequence[K], deltas: Iterable[int]) -> None:
        totals = self._totals.setdefault(group, {})
        for key, delta in zip(keys, deltas, strict=True):
            totals[key] = totals.get(key, 0) + delta

    def forget(self, name: str) -> None:
        """Forget an absent member: if it comes back, it is new."""
        if self._present is None or name not in self._present:
            self._members.pop(name, None)

    def _forget(self, members: Mapping[str, G | None]) -> None:
        gone = sorted((m.seen_at, name) for name, m in self._members.items() if name not in members)
        for _, name in gone[: len(self._members) - len(members) - SPARE]:
            del self._members[name]
