"""The table of files that records named, as columns of numbers: a file takes about 80 bytes; and numbers of keys.

Rows are only added. Those of files that are gone stay until :meth:`FileTable.compact`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lustre.fid import FID_BYTES, Fid
from tierd.loads import Bools, Floats, Ints

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
    """The column with room for this many rows: itself, or a copy that is half as long again."""
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
    """Gives each key of fixed size, such as a FID, the next number. Keys stay until all are dropped.

    It is a hash table in columns of numpy, for many keys at once. Rows are taken by ``take``, as numpy is many times
    slower to index rows of a few words.

    >>> index = KeyIndex(words=2)
    >>> keys = np.array([[5, 1], [7, 1], [5, 1]], np.uint64)
    >>> index.numbers_of(keys).tolist(), index.find(keys[::-1] + np.uint64(0)).tolist(), len(index)
    ([0, 1, 0], [0, 1, 0], 2)
    >>> index.find(np.array([[1, 5]], np.uint64)).tolist()
    [-1]
    """

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
        # UNKNOWN takes the last row of all, and is left out below
        same = _same(self.keys.take(number, axis=0, mode="wrap"), keys)
        return np.flatnonzero(~same & (number != UNKNOWN))

    def numbers_of(self, keys: Words, adds: Bools | bool = True) -> Ints:
        """The number of each key. New ones where ``adds`` is true get the next numbers, in the order of the keys."""
        found = self.find(keys)
        new = np.flatnonzero((found == UNKNOWN) & adds)
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
            # a slot of an older key takes any row, and is left out by its sign
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
        """Drop all keys, and number these, which are distinct, from 0 on. There is room for as many more."""
        self._use(max(FIRST_BITS, (2 * (len(keys) + more)).bit_length()))
        self.keys, self._count = grown(self.keys, len(keys)), len(keys)
        self.keys[:len(keys)] = keys
        left, at = np.arange(len(keys)), self._slots(keys)
        while len(left):
            free = self._number_at[at] == UNKNOWN
            self._number_at[at[free]] = left[free]
            lost = self._number_at[at] != left
            left, at = left[lost], at[lost] + 1 & self._mask


as_fid: Callable[[bytes], Fid] = partial(bytes.__new__, Fid)
"""Makes a FID from its bytes."""
Bytes = NDArray[np.uint8]
_COLUMNS = {"present": bool, "owner": np.int32, "place": np.int32, "created": bool, "open_count": np.int32,
            "reopened": np.int32, "created_at": float, "closed_at": float, "name_at": np.int32, "name_bytes": np.int32}


def fid_words(fids: Collection[bytes]) -> Words:
    return np.frombuffer(b"".join(fids), np.uint64).reshape(-1, 2)


def each_fid(fids: Words) -> list[Fid]:
    data = fids.tobytes()
    return [as_fid(data[at:at + FID_BYTES]) for at in range(0, len(data), FID_BYTES)]


class FileTable:
    """Files by FID. The order of the rows is that in which FIDs were first seen."""

    present: NDArray[np.bool_]
    """Whether the table has the file."""
    owner: NDArray[np.int32]
    """Number of the counts of the job that created it or opened it last, in its directory at that time."""
    place: NDArray[np.int32]
    """Number of its directory."""
    created: NDArray[np.bool_]
    """Whether its creation was recorded."""
    open_count: NDArray[np.int32]
    reopened: NDArray[np.int32]
    """Opens, without the open that created it."""
    created_at: NDArray[np.float64]
    closed_at: NDArray[np.float64]
    name_at: NDArray[np.int32]
    """Where its name begins in ``names``."""
    name_bytes: NDArray[np.int32]

    def __init__(self) -> None:
        self.fids = KeyIndex(words=2)
        self.names: Bytes = np.zeros(64, np.uint8)
        self.names_used = 0
        for name, kind in _COLUMNS.items():
            setattr(self, name, np.zeros(64, kind))

    def rows_of(self, fids: Words, adds: Bools | bool = True) -> Ints:
        """The row of each FID. New ones where ``adds`` is true get rows without a file."""
        rows, count = self.fids.numbers_of(fids, adds), len(self.fids)
        if count > len(self.present):
            for name in _COLUMNS:
                setattr(self, name, grown(getattr(self, name), count))
        return rows

    def row_of(self, fid: bytes) -> int:
        """The row of a file; -1 if the table has no such file."""
        return int(next(iter(self.known_rows([fid])), -1))

    def has(self, fids: Words) -> Bools:
        rows = self.fids.find(fids)
        return (rows >= 0) & self.present[rows]

    def known_rows(self, fids: Collection[bytes]) -> Ints:
        """The rows of those of these files that the table has."""
        rows = self.fids.find(fid_words(fids))
        found: Ints = rows[(rows >= 0) & self.present[rows]]
        return found

    def fids_of(self, rows: Ints) -> list[Fid]:
        return each_fid(self.fids.keys.take(rows, axis=0))

    def rows(self) -> Ints:
        return np.flatnonzero(self.present[:len(self.fids)])

    def oldest(self, count: int) -> Ints:
        """The rows of the files that were seen first; there must be as many."""
        begin = some = int(self.present.argmax())
        while len(found := np.flatnonzero(self.present[begin:some])) < count:
            some += 2 * count
        return begin + found[:count]

    def put(self, rows: Ints | int, owner: Ints | int, place: Ints | int, *, created: Bools | bool,
            open_count: Ints | int = 0, reopened: Ints | int = 0, created_at: Floats | float = 0.0,
            closed_at: Floats | float = 0.0) -> None:
        """Put files into rows. Their names are put in next."""
        self.present[rows] = True
        self.owner[rows], self.place[rows], self.created[rows] = owner, place, created
        self.open_count[rows], self.reopened[rows] = open_count, reopened
        self.created_at[rows], self.closed_at[rows] = created_at, closed_at

    def put_names(self, rows: Ints, text: Bytes, begins: Ints, sizes: Ints) -> None:
        """Put names, which are parts of a text, into rows."""
        at, which = pieces(begins, sizes)
        end = self.names_used + len(which)
        self.names = grown(self.names, end)
        self.names[self.names_used:end] = text[which]
        self.name_at[rows], self.name_bytes[rows] = self.names_used + at, sizes
        self.names_used = end

    def put_name(self, row: int, name: bytes) -> None:
        text = np.frombuffer(name, np.uint8)
        self.put_names(np.array([row]), text, np.zeros(1, np.int64), np.array([len(name)]))

    def names_of(self, rows: Ints) -> list[bytes]:
        sizes = self.name_bytes[rows].astype(np.int64)
        at, which = pieces(self.name_at[rows].astype(np.int64), sizes)
        text = self.names[which].tobytes()
        return [text[begin:end] for begin, end in zip(at.tolist(), (at + sizes).tolist(), strict=True)]

    def compact(self) -> Ints:
        """Drop the rows without a file. Returns the new number of each row, -1 for those that are dropped."""
        rows, before = self.rows(), len(self.fids)
        names, self.names, self.names_used = self.names, np.zeros_like(self.names), 0
        for some in np.array_split(rows, len(rows) // 4096 + 1):  # indices of all bytes of names would be 16 MiB
            self.put_names(some, names, self.name_at[some].astype(np.int64), self.name_bytes[some].astype(np.int64))
        self.fids.replace(self.fids.keys.take(rows, axis=0))
        for name in _COLUMNS:
            column = getattr(self, name)
            column[:len(rows)], column[len(rows):] = column[rows], 0
        renumbered = np.full(before, -1, np.int64)
        renumbered[rows] = np.arange(len(rows))
        return renumbered


def pieces(begins: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Where each piece begins when all stand one behind the other, and where each of their parts is now."""
    at = np.cumsum(sizes) - sizes
    which = np.repeat(begins - at, sizes)
    return at, np.add(which, np.arange(len(which)), out=which)
