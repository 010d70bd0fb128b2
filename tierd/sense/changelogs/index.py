"""Numbers of keys of fixed size, such as FIDs, for many keys at once: a hash table in columns of numpy.

Rows are taken by ``take``, as numpy is many times slower to index rows of a few words.

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
"""Number of a key that is not known. Columns keep a row at least, so that numpy takes this row of any."""
_CLAIMED = -2
"""A slot that the key with number n of those to add has taken is ``_CLAIMED`` - n."""
FIRST_BITS = 7
"""Slots at the beginning, as a power of two."""


def grown(column: Any1D, count: int) -> Any1D:
    """The column with room for so many rows: itself, or a copy that is half as long again."""
    if count <= len(column):
        return column
    more = np.zeros((max(count, len(column) * 3 // 2), *column.shape[1:]), column.dtype)
    more[:len(column)] = column
    return more  # type: ignore[return-value]


def _same(some: Words, others: Words) -> Bools:
    same: Bools = some[:, 0] == others[:, 0]
    for word in range(1, some.shape[1]):
        same &= some[:, word] == others[:, word]
    return same


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

    def find(self, keys: Words) -> Ints:
        """The number of each key, or ``UNKNOWN``."""
        at = self._slots(keys)
        found = self._number_at[at]
        left = self._others(found, keys)
        at = at[left]
        while len(left):
            at = at + 1 & self._mask
            found[left] = number = self._number_at[at]
            others = self._others(number, keys.take(left, axis=0))
            left, at = left[others], at[others]
        return found.astype(np.int64)

    def _others(self, number: NDArray[np.int32], keys: Words) -> Ints:
        """Which of these numbers belong to other keys than these."""
        same = _same(self.keys.take(number, axis=0, mode="wrap"), keys)
        return np.flatnonzero(~same & (number != UNKNOWN))

    def numbers_of(self, keys: Words) -> Ints:
        """The number of each key. New ones get the next numbers, in the order of the keys."""
        found = self.find(keys)
        new = np.flatnonzero(found == UNKNOWN)
        if len(new):
            found[new] = self._add(keys.take(new, axis=0))
        return found

    def _add(self, keys: Words) -> Ints:
        """The numbers of keys that had none. There may be the same several times."""
        if 2 * (self._count + len(keys)) >= len(self._number_at):
            self.replace(self.keys[:self._count], len(keys))
        every, slot = np.arange(len(keys)), self._slots(keys)
        first, left = every.copy(), every
        while len(left):
            free = left[self._number_at[slot[left]] == UNKNOWN][::-1]
            self._number_at[slot[free]] = _CLAIMED - free  # of several keys for one slot, the first wins
            holder = _CLAIMED - self._number_at[slot[left]]
            same = _same(keys.take(holder, axis=0, mode="clip"), keys.take(left, axis=0)) & (holder >= 0)
            first[left[same]] = holder[same]
            left = left[~same]
            slot[left] = slot[left] + 1 & self._mask
        new, begin = first == every, self._count
        number = np.cumsum(new) + (begin - 1)
        self._number_at[slot[new]] = number[new]
        self._count = int(number[-1]) + 1
        self.keys = grown(self.keys, self._count)
        self.keys[begin:self._count] = keys.compress(new, axis=0)
        return number[first]

    def replace(self, keys: Words, more: int = 0) -> None:
        """Drop all keys, and number these, which are distinct, from 0 on. There is room for so many more."""
        self._use(max(FIRST_BITS, (2 * (len(keys) + more)).bit_length()))
        self.keys, self._count = grown(keys.copy(), 1), len(keys)
        left, at = np.arange(len(keys)), self._slots(keys)
        while len(left):
            free = self._number_at[at] == UNKNOWN
            self._number_at[at[free]] = left[free]
            lost = self._number_at[at] != left
            left, at = left[lost], at[lost] + 1 & self._mask
