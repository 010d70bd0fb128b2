"""Numbers of keys of fixed size, such as FIDs, for many keys at once: a hash table in columns of numpy.

>>> index = KeyIndex(words=2)
>>> keys = np.array([[5, 1], [7, 1], [5, 1]], np.uint64)
>>> index.numbers_of(keys).tolist(), index.find(keys[::-1] + np.uint64(0)).tolist(), len(index)
([0, 1, 0], [0, 1, 0], 2)
>>> index.find(np.array([[1, 5]], np.uint64)).tolist()
[-1]
"""

from __future__ import annotations

import os
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tierd.loads import Bools, Ints

Words = NDArray[np.uint64]
"""Keys: a row of 64-bit words for each."""
Any1D = TypeVar("Any1D", bound=NDArray[np.generic])
UNKNOWN = -1
FIRST_BITS = 7
"""Slots at the beginning, as a power of two."""


def grown(column: Any1D, count: int) -> Any1D:
    """The column with room for so many rows: itself, or a copy that is half as long again."""
    if count <= len(column):
        return column
    more = np.zeros((max(count, len(column) * 3 // 2), *column.shape[1:]), column.dtype)
    more[:len(column)] = column
    return more  # type: ignore[return-value]


class KeyIndex:
    """Gives each key the next number. Keys stay until all are dropped."""

    def __init__(self, words: int) -> None:
        self.keys: Words = np.zeros((1 << FIRST_BITS - 1, words), np.uint64)
        """By number. There may be unused rows at the end."""
        # as nobody can know them, nobody can choose names that fall into the same slots
        self._factors = np.frombuffer(os.urandom(8 * words), np.uint64) | np.uint64(1)
        self._count = 0
        self._use(FIRST_BITS)

    def _use(self, bits: int) -> None:
        self._shift, self._mask = np.uint64(64 - bits), (1 << bits) - 1
        self._number_at = np.full(1 << bits, UNKNOWN, np.int32)

    def __len__(self) -> int:
        return self._count

    def _slots(self, keys: Words) -> Ints:
        mixed = keys[:, 0] * self._factors[0]
        for word in range(1, keys.shape[1]):
            mixed += keys[:, word] * self._factors[word]
        found: Ints = (mixed >> self._shift).astype(np.int64)
        return found

    def _same(self, number: NDArray[np.int32], keys: Words) -> Bools:
        known = self.keys[number]
        same: Bools = known[:, 0] == keys[:, 0]
        for word in range(1, keys.shape[1]):
            same &= known[:, word] == keys[:, word]
        return same

    def find(self, keys: Words) -> Ints:
        """The number of each key, or ``UNKNOWN``."""
        found = np.full(len(keys), UNKNOWN, np.int64)
        left, at = np.arange(len(keys)), self._slots(keys)
        while len(left):
            number = self._number_at[at]
            taken = number != UNKNOWN
            left, at, number = left[taken], at[taken], number[taken]
            same = self._same(number, keys[left])
            found[left[same]] = number[same]
            left, at = left[~same], at[~same] + 1 & self._mask
        return found

    def numbers_of(self, keys: Words) -> Ints:
        """The number of each key. New ones get the next numbers, in the order of the keys."""
        self._make_room(len(keys))
        found, begin = np.empty(len(keys), np.int64), self._count
        left, at = np.arange(len(keys)), self._slots(keys)
        first, slots = left[:0], left[:0]
        while len(left):
            free = self._number_at[at] == UNKNOWN
            if free.any():
                mine, here = left[free], at[free]
                self._number_at[here[::-1]] = -2 - mine[::-1]  # of several keys for one slot, the first wins
                won = self._number_at[here] == -2 - mine
                first, slots = np.append(first, mine[won]), np.append(slots, here[won])
                self._number_at[here[won]] = np.arange(self._count, begin + len(first))
                self._append(keys[mine[won]])
            number = self._number_at[at]
            same = self._same(number, keys[left])
            found[left[same]] = number[same]
            left, at = left[~same], at[~same] + 1 & self._mask
        order = np.argsort(first)
        self.keys[begin:self._count] = keys[first[order]]
        self._number_at[slots[order]] = np.arange(begin, self._count)
        new = found >= begin
        found[new] = begin + np.argsort(order)[found[new] - begin]
        return found

    def _append(self, keys: Words) -> None:
        end = self._count + len(keys)
        self.keys = grown(self.keys, end)
        self.keys[self._count:end] = keys
        self._count = end

    def _make_room(self, more: int) -> None:
        bits = max(FIRST_BITS, (2 * (self._count + more)).bit_length())
        if 1 << bits > len(self._number_at):
            self.replace(self.keys[:self._count], bits)

    def replace(self, keys: Words, bits: int = FIRST_BITS) -> None:
        """Drop all keys, and number these, which are distinct, from 0 on."""
        self._use(max(bits, (2 * len(keys)).bit_length()))
        self.keys, self._count = keys.copy(), len(keys)
        left, at = np.arange(len(keys)), self._slots(keys)
        while len(left):
            free = self._number_at[at] == UNKNOWN
            self._number_at[at[free]] = left[free]
            lost = self._number_at[at] != left
            left, at = left[lost], at[lost] + 1 & self._mask
