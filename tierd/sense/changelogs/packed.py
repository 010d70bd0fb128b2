"""Changelog records in their bytes, of which numpy reads the fields that the activity table needs.

A record is *regular* if it has a job id, an owner and a NID, and perhaps the flags of an open, as Lustre writes for
most that jobs do to files: these fields are at the same place in each, and its flags show where it begins. The others
are measured and decoded one by one (:mod:`lustre.changelog.record`).

>>> from simulator.servers.changelog_bytes import encode
>>> from lustre.changelog.record import Record, RecordType
>>> data = encode(Record(7, RecordType.CREATE, 5.5, job_id=b"cp.0", uid=0, gid=0, nid="10.0.0.1@tcp", name=b"f"))
>>> [piece] = packed_pieces(data + data)
>>> len(piece), piece.last_index, piece.newest_time, piece[0].name
(2, 7, 5.5, b'f')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lustre.changelog.record import (
    EXTRA,
    JOB_ID,
    NAME_BYTES_MAX,
    NID,
    OWNER,
    SECOND_SHIFT,
    TYPE_FLAG_BITS,
    VERSION,
    Record,
    RecordType,
    form,
    measure,
    some,
)
from lustre.changelog.record import OPEN as OPEN_FLAG
from lustre.changelog.record import RENAME as RENAME_FLAG
from tierd.loads import Bools, Floats, Ints
from tierd.sense.changelogs.files import Bytes, Words, fid_words

_EXTENSIONS = JOB_ID | EXTRA
_PLAIN, _OPENED = OWNER | NID, OWNER | NID | OPEN_FLAG
_SIZES = {extra: form(_EXTENSIONS, extra).size for extra in (_PLAIN, _OPENED)}
"""Bytes before the name of a regular record, by its extra flags."""
_MASK = RENAME_FLAG | _EXTENSIONS
_FLAGS_BYTE = (VERSION | _EXTENSIONS) << TYPE_FLAG_BITS - 8
"""Fourth byte of nearly all regular records: Lustre sets ``VERSION`` in each."""
_WORDS = 19
"""64-bit words that hold the fields of a regular record. Flags, type, index and time are those of any record."""
_INDEX, _TIME, _EXTRA, _OPEN_MODE = 1, 3, 12, 18
"""Words of a regular record."""
_BYTES = np.dtype((np.void, 8 * _WORDS))
"""The words as mere bytes, which numpy copies at once and not word by word."""
_KEYS = np.dtype({"names": ["target", "parent", "job", "nid"], "formats": ["V16", "V16", "V32", "V24"],
                  "offsets": [32, 48, 64, 120], "itemsize": 8 * _WORDS})
"""Fields of a regular record that are keys of several words."""
PIECE = 8192
"""Records in one piece: about as many as one read returns."""
_AT_ONCE = 1 << 17
"""Bytes that are searched at once, so that the same memory serves for all of them: new pages take most of the time."""


@dataclass(frozen=True, slots=True, eq=False)
class Records(Sequence[Record]):
    """Records, most of which are counted from their first words. One is decoded when it is asked for."""

    data: bytes
    """It has the names of regular records."""
    starts: Ints
    """Where each record begins."""
    ends: Ints
    words: Words
    """The first words of each record."""
    times: Floats
    decode: Callable[[int], Record]
    """The record that begins at a place."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> Records:
        """Records that were decoded before: none of them is regular."""
        if isinstance(records, Records):
            return records
        every = np.arange(len(records))
        words = np.zeros((len(records), _WORDS), np.uint64)
        words[:, 0] = [record.type << 32 for record in records]
        words[:, _INDEX] = [record.index for record in records]
        times = np.array([record.time for record in records], float)
        return cls(b"", every, every, words, times, decode=records.__getitem__)

    def at(self, which: Ints | slice) -> Records:
        """Some of the records."""
        return replace(self, starts=self.starts[which], ends=self.ends[which], words=self.words[which],
                       times=self.times[which])

    @property
    def indexes(self) -> NDArray[np.uint64]:
        return self.words[:, _INDEX]

    @property
    def last_index(self) -> int:
        return int(self.indexes[-1])

    @property
    def newest_time(self) -> float:
        """Time of the newest record; 0 without records."""
        return float(self.times.max(initial=0.0))

    @property
    def oldest_time(self) -> float:
        """Time of the oldest record; infinite without records."""
        return float(self.times.min(initial=np.inf))

    def __getitem__(self, number: Any) -> Any:
        return self.decode(int(self.starts[number]))

    def __len__(self) -> int:
        return len(self.starts)


def packed_pieces(data: bytes, most: int = PIECE) -> Iterator[Records]:
    """Yield all whole records in pieces of limited length. Raises ValueError at the first invalid record."""
    padded = data + bytes(_BYTES.itemsize)  # the words of the last record end within it
    starts = _starts(data, padded)
    for first in range(0, len(starts) - 1, most):
        yield _packed(padded, starts[first:first + most + 1])
    measure(data, int(starts[-1]))  # raises the error


def _packed(padded: bytes, starts: Ints) -> Records:
    """Records in their bytes. ``starts`` are their offsets, and the end; at least 152 bytes follow the last one."""
    anywhere: np.ndarray[tuple[int], np.dtype[np.void]] = np.ndarray(
        (len(padded) - _BYTES.itemsize + 1,), _BYTES, padded, strides=(1,))
    words: Words = anywhere[starts[:-1]].view("<u8").reshape(-1, _WORDS)
    time = words[:, _TIME]
    return Records(padded, starts[:-1], starts[1:], words,
                   (time >> SECOND_SHIFT) + (time & ((1 << SECOND_SHIFT) - 1)) / 1e9,
                   decode=lambda at: some(padded, at, 1)[0][0])


def _starts(data: bytes, padded: bytes) -> Ints:
    """Where all whole records begin, and where the last of them ends."""
    begins, ends = _regular(len(data), padded)
    # records that follow one another are taken as one run
    last_of_runs = np.flatnonzero(np.append(ends[:-1] != begins[1:], True))[:len(begins)]
    found, at = list[Ints](), 0
    while at < len(data):
        first = int(np.searchsorted(begins, at))
        if first < len(begins) and begins[first] == at:
            last = int(last_of_runs[np.searchsorted(last_of_runs, first)])
            found.append(begins[first:last + 1])
            at = int(ends[last])
            continue
        try:
            shape = measure(data, at)
        except ValueError:
            break  # raised after the records before it
        if shape is None:
            break
        found.append(np.array([at]))
        at = shape[1]
    return np.concatenate((*found, [at]))


def _regular(size: int, padded: bytes) -> tuple[Ints, Ints]:
    """Where bytes look like a whole regular record, and where it would end. Names may look like one too."""
    flags = np.frombuffer(padded, np.uint8)[3:3 + size]
    begins = np.concatenate([at + np.flatnonzero(flags[at:at + _AT_ONCE] == _FLAGS_BYTE)
                             for at in range(0, size or 1, _AT_ONCE)])
    word: np.ndarray[tuple[int], np.dtype[np.uint64]] = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    name_bytes, opened, regular = _head(word[begins], word[begins + 8 * _EXTRA])
    ends = begins + np.where(opened, _SIZES[_OPENED], _SIZES[_PLAIN]) + name_bytes
    regular &= ends <= size
    return begins[regular], ends[regular]


def _head(word: NDArray[np.uint64], extra: NDArray[np.uint64]) -> tuple[Ints, Bools, Bools]:
    """Bytes of the names of records, whether they have flags of an open, and whether they are regular."""
    name_bytes, opened = (word & 0xFFFF).astype(np.int64), extra == _OPENED
    regular = (opened | (extra == _PLAIN)) & (word >> 16 + TYPE_FLAG_BITS & _MASK == _EXTENSIONS)
    return name_bytes, opened, regular & (name_bytes <= NAME_BYTES_MAX)


CREATE, OPEN, CLOSE, UNLINK, RENAME, LAYOUT, MKDIR = _KINDS = tuple(int(kind) for kind in (
    RecordType.CREATE, RecordType.OPEN, RecordType.CLOSE, RecordType.UNLINK, RecordType.RENAME, RecordType.LAYOUT,
    RecordType.MKDIR))


def _column(name: str) -> Any:
    return property(lambda self: self._columns[name].take(self.number, axis=0))


class Fields:
    """Some records, in any order. A column is a row for each, made when it is asked for."""

    __slots__ = ("_columns", "number")

    def __init__(self, columns: Mapping[str, NDArray[Any]], number: Ints) -> None:
        """``columns`` are those of all records that were read together, and ``number`` which of them these are."""
        self._columns, self.number = columns, number

    kind: Ints = _column("kind")
    time: Floats = _column("time")
    target: Words = _column("target")
    """FID. Of a rename, that of what was renamed."""
    parent: Words = _column("parent")
    job: Words = _column("job")
    nid: Ints = _column("nid")
    """Number of the client."""
    mode: Ints = _column("mode")
    """Flags of an open."""
    name_at: Ints = _column("name_at")
    """Where the name begins in the text."""
    name_bytes: Ints = _column("name_bytes")

    def __len__(self) -> int:
        return len(self.number)

    def at(self, which: Ints | Bools | slice) -> Fields:
        return Fields(self._columns, self.number[which])


@dataclass(frozen=True, slots=True, eq=False)
class CountedRecords:
    """The counted ones of some records."""

    fields: Fields
    text: Bytes
    """It has all names."""
    record: Callable[[int], Record]
    """Decodes one of the records."""
    renames: Mapping[int, Record]
    """The renames among them, decoded, by number."""

    def name(self, fields: Fields, at: int) -> str:
        begin = int(fields.name_at[at])
        name = self.text[begin:begin + int(fields.name_bytes[at])].tobytes()
        return name.decode("utf-8", "surrogateescape")


def counted_records(records: Records, nids: Callable[[Words], Ints], nid: Callable[[str], int]) -> CountedRecords:
    """Read fields. ``nids`` and ``nid`` give the numbers of clients, by their NIDs in bytes and in text."""
    words, text = records.words, records.data
    name_bytes, opened, regular = _head(words[:, 0], words[:, _EXTRA])
    named = words.view(_KEYS)[:, 0]
    columns: dict[str, NDArray[Any]] = {
        name: named[name].copy().view(np.uint64).reshape(len(named), _KEYS[name].itemsize // 8)
        for name in _KEYS.names or ()}
    columns |= {
        "kind": (words[:, 0] >> 32).astype(np.int64), "time": records.times,
        "mode": np.where(opened, words[:, _OPEN_MODE] & 0xFFFFFFFF, 0).astype(np.int64),
        "name_at": records.ends - name_bytes, "name_bytes": name_bytes}
    keys, columns["nid"] = columns["nid"], np.zeros(len(words), np.int64)
    counted, regular = np.isin(columns["kind"], _KINDS), regular & (columns["kind"] != RENAME)
    at = np.flatnonzero(counted & regular)
    columns["nid"][at] = nids(keys.take(at, axis=0))
    others = np.flatnonzero(counted & ~regular)  # with each rename
    each = [records[number] for number in others.tolist()]
    _put(columns, others, each, nid, len(text))
    return CountedRecords(
        Fields(columns, np.flatnonzero(counted)),
        np.frombuffer(b"".join((text, *(one.name for one in each))), np.uint8), records.__getitem__,
        {number: one for number, one in zip(others.tolist(), each, strict=True) if one.type is RecordType.RENAME})


def _put(columns: Mapping[str, NDArray[Any]], rows: Ints, each: Sequence[Record], nid: Callable[[str], int],
         text_bytes: int) -> None:
    """Put in the fields of decoded records. Their names come behind the text."""
    if not each:
        return
    sizes = np.array([len(one.name) for one in each])
    found: dict[str, Any] = {
        "parent": fid_words([one.parent for one in each]),
        "target": fid_words([(one.source or one.target) if one.type is RecordType.RENAME else one.target
                             for one in each]),
        "job": np.array([one.job_id for one in each], "S32").view(np.uint64).reshape(-1, 4),
        "nid": [nid(one.nid) for one in each],
        "mode": [one.open_mode or 0 for one in each], "name_at": text_bytes + np.cumsum(sizes) - sizes,
        "name_bytes": sizes}
    for name, values in found.items():
        columns[name][rows] = values
