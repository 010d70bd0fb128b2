"""The table of files that records named, as columns of numbers: a file takes some 80 bytes.

Rows are only added. Those of files that are gone stay until :meth:`FileTable.compact`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lustre.fid import FID_BYTES, Fid
from tierd.loads import Bools, Floats, Ints
from tierd.sense.changelogs.index import KeyIndex, Words, grown

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

    def rows_of(self, fids: Words) -> Ints:
        """The row of each FID. New ones get rows without a file."""
        rows, count = self.fids.numbers_of(fids), len(self.fids)
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

    def fid(self, row: int) -> Fid:
        return as_fid(self.fids.keys[row].tobytes())

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
        at, which = _pieces(begins, sizes)
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
        at, which = _pieces(self.name_at[rows].astype(np.int64), sizes)
        text = self.names[which].tobytes()
        return [text[begin:end] for begin, end in zip(at.tolist(), (at + sizes).tolist(), strict=True)]

    def compact(self) -> Ints:
        """Drop the rows without a file. Returns the new number of each row, -1 for those that are dropped."""
        rows, before = self.rows(), len(self.fids)
        at, which = _pieces(self.name_at[rows].astype(np.int64), self.name_bytes[rows].astype(np.int64))
        self.names, self.names_used = self.names[which], len(which)
        self.fids.replace(self.fids.keys.take(rows, axis=0))
        for name in _COLUMNS:
            setattr(self, name, grown(getattr(self, name)[rows], 1))
        self.name_at = grown(at.astype(np.int32), 1)
        renumbered = np.full(before, -1, np.int64)
        renumbered[rows] = np.arange(len(rows))
        return renumbered


def _pieces(begins: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Where each piece begins when all stand one behind the other, and where each of their bytes is now."""
    at = np.cumsum(sizes) - sizes
    return at, np.repeat(begins - at, sizes) + np.arange(int(sizes.sum()))
