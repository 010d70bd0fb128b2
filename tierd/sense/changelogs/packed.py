"""Changelog records in their bytes, of which numpy reads the fields that the activity table needs.

Python finds where each record begins. A record is *regular* if it has a job id, an owner and a NID, and perhaps the
flags of an open, as Lustre writes for most that jobs do to files: these fields are at the same place in each. The
others are decoded one by one (:mod:`lustre.changelog.decode`).

>>> from simulator.servers.changelog_bytes import encode
>>> from lustre.changelog.record import Record, RecordType
>>> data = encode(Record(7, RecordType.CREATE, 5.5, job_id=b"cp.0", uid=0, gid=0, nid="10.0.0.1@tcp", name=b"f"))
>>> [piece] = packed_pieces(data + data)
>>> len(piece), last_index(piece), newest_time(piece), piece[0].name
(2, 7, 5.5, b'f')
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lustre.changelog.decode import (
    EXTRA,
    JOB_ID,
    NAME_BYTES_MAX,
    NID,
    OWNER,
    SECOND_SHIFT,
    TYPE_FLAG_BITS,
    form,
    measure,
    some,
)
from lustre.changelog.decode import (
    OPEN as OPEN_FLAG,
)
from lustre.changelog.decode import (
    RENAME as RENAME_FLAG,
)
from lustre.changelog.record import Record, RecordType
from tierd.loads import Bools, Floats, Ints
from tierd.sense.changelogs.files import Bytes, fid_words
from tierd.sense.changelogs.index import Words

_EXTENSIONS = JOB_ID | EXTRA
_PLAIN, _OPENED = OWNER | NID, OWNER | NID | OPEN_FLAG
_SIZES = {extra: form(_EXTENSIONS, extra).size for extra in (_PLAIN, _OPENED)}
"""Bytes before the name of a regular record, by its extra flags."""
_begin = struct.Struct("<HH92xQ").unpack_from
"""Bytes of the name, flags, extra flags of a regular record."""
_MASK = (RENAME_FLAG | _EXTENSIONS) << TYPE_FLAG_BITS
_REGULAR = _EXTENSIONS << TYPE_FLAG_BITS
_FIELDS = np.dtype({
    "names": ["flags", "type", "index", "time", "target", "parent", "job_id", "extra", "nid", "open_mode"],
    "formats": ["<u2", "<u4", "<u8", "<u8", "V16", "V16", "S32", "<u8", "V24", "<u4"],
    "offsets": [2, 4, 8, 24, 32, 48, 64, 96, 120, 144],
    "itemsize": 152,
})  # fmt: skip
"""The fields of a regular record, in whole words. Flags, type, index and time are those of any record."""
_BYTES = np.dtype((np.void, _FIELDS.itemsize))
"""The same as mere bytes, which numpy copies at once and not field by field."""
PIECE = 8192
"""Records in one piece: about as many as one read returns."""


class PackedRecords(Sequence[Record]):
    """Records in their bytes. They are decoded when one of them is needed; most are counted from their bytes."""

    __slots__ = ("_decoded", "data", "fields", "last_index", "newest_time", "oldest_time", "starts",
                 "times")

    def __init__(self, data: bytes, starts: list[int], end: int) -> None:
        """``starts`` are the byte offsets of the records; at least 152 bytes follow the last one."""
        self.data = data
        self.starts = [*starts, end]
        """Where each record begins, and where the last one ends."""
        anywhere: np.ndarray[tuple[int], np.dtype[np.void]] = np.ndarray(
            (len(data) - _BYTES.itemsize + 1,), _BYTES, data, strides=(1,))
        self.fields: NDArray[np.void] = anywhere[np.array(starts)].view(_FIELDS)
        time = self.fields["time"]
        self.times = (time >> SECOND_SHIFT) + (time & ((1 << SECOND_SHIFT) - 1)) / 1e9
        self.last_index = int(self.fields["index"][-1])
        self.oldest_time, self.newest_time = float(self.times.min()), float(self.times.max())
        self._decoded: list[Record] | None = None

    def decoded(self, number: int) -> Record:
        """One record."""
        [record], _ = some(self.data, self.starts[number], 1)
        return record

    @property
    def records(self) -> list[Record]:
        """The records, decoded."""
        if self._decoded is None:
            self._decoded, _ = some(self.data, self.starts[0], len(self))
        return self._decoded

    def __getitem__(self, index: Any) -> Any:
        return self.records[index]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)


def packed_pieces(data: bytes, most: int = PIECE) -> Iterator[PackedRecords]:
    """Yield all whole records in pieces of limited length. Raises ValueError at the first invalid record."""
    at, padded = 0, data + bytes(_FIELDS.itemsize)
    while True:
        starts, end = _starts(data, padded, at, most)
        if not starts:
            measure(data, at)  # raises the error
            return
        yield PackedRecords(padded, starts, end)
        at = end


def _starts(data: bytes, padded: bytes, at: int, most: int) -> tuple[list[int], int]:
    """Where at most ``most`` whole records begin, and where the last of them ends."""
    starts: list[int] = []
    size_of, last = _SIZES.get, len(data)
    for _ in repeat(None, most):
        name_bytes, flags, extra = _begin(padded, at)
        size = size_of(extra)
        if size is not None and flags & _MASK == _REGULAR and name_bytes <= NAME_BYTES_MAX:
            end = at + size + name_bytes
            if end > last:
                break
        else:
            try:
                shape = measure(data, at)
            except ValueError:
                break
            if shape is None:
                break
            end = shape[1]
        starts.append(at)
        at = end
    return starts, at


_time = attrgetter("time")


def last_index(records: Sequence[Record]) -> int:
    """Index of the last of some records."""
    return records.last_index if isinstance(records, PackedRecords) else records[-1].index


def newest_time(records: Sequence[Record]) -> float:
    """Time of the newest of some records; 0 without records."""
    if isinstance(records, PackedRecords):
        return records.newest_time
    return max(map(_time, records), default=0.0)


def oldest_time(records: Sequence[Record]) -> float:
    """Time of the oldest of some records; infinite without records."""
    if isinstance(records, PackedRecords):
        return records.oldest_time
    return min(map(_time, records), default=float("inf"))


CREATE, OPEN, CLOSE, UNLINK, RENAME, LAYOUT, MKDIR = _KINDS = tuple(int(kind) for kind in (
    RecordType.CREATE, RecordType.OPEN, RecordType.CLOSE, RecordType.UNLINK, RecordType.RENAME, RecordType.LAYOUT,
    RecordType.MKDIR))


def _column(name: str) -> Any:
    return property(lambda self: self._columns[name][self.number])


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

    def name(self, fields: Fields, at: int) -> str:
        begin = int(fields.name_at[at])
        name = self.text[begin:begin + int(fields.name_bytes[at])].tobytes()
        return name.decode("utf-8", "surrogateescape")


def counted_records(records: Sequence[Record], nids: Callable[[Words], Ints],
                    nid: Callable[[str], int]) -> CountedRecords:
    """Read fields. ``nids`` and ``nid`` give the numbers of clients, by their NIDs in bytes and in text."""
    record: Callable[[int], Record]
    if isinstance(records, PackedRecords):
        fields, starts, times = records.fields, np.array(records.starts), records.times
        text, record = records.data, records.decoded
    else:
        count = len(records)
        fields, starts, times = np.zeros(count, _FIELDS), np.zeros(count + 1, np.int64), np.zeros(count)
        fields["type"] = [record.type for record in records]
        text, record = b"", records.__getitem__
    opened = fields["extra"] == _OPENED
    regular = ((fields["flags"] & _MASK) == _REGULAR) & (opened | (fields["extra"] == _PLAIN))
    name_at = starts[:-1] + np.where(opened, _SIZES[_OPENED], _SIZES[_PLAIN])
    columns = {
        "kind": fields["type"].astype(np.int64), "time": times, "target": _words(fields["target"]),
        "parent": _words(fields["parent"]), "job": _words(fields["job_id"]), "nid": np.zeros(len(fields), np.int64),
        "mode": np.where(opened, fields["open_mode"], 0).astype(np.int64), "name_at": name_at,
        "name_bytes": starts[1:] - name_at}
    counted = np.isin(columns["kind"], _KINDS)
    at = np.flatnonzero(counted & regular)
    columns["nid"][at] = nids(_words(fields["nid"][at]))
    names = _decode(columns, np.flatnonzero(counted & ~regular), record, nid, len(text))
    return CountedRecords(Fields(columns, np.flatnonzero(counted)), np.frombuffer(b"".join((text, *names)), np.uint8),
                          record)


def _words(column: NDArray[np.void]) -> Words:
    return np.ascontiguousarray(column).view(np.uint64).reshape(len(column), column.dtype.itemsize // 8)


def _decode(columns: Mapping[str, NDArray[Any]], rows: Ints, record: Callable[[int], Record],
            nid: Callable[[str], int], text_bytes: int) -> list[bytes]:
    """Put in the fields of decoded records. Returns their names, which come behind the text."""
    each = [record(number) for number in rows.tolist()]
    if not each:
        return []
    names = [one.name for one in each]
    sizes = np.array([len(name) for name in names])
    found: dict[str, Any] = {
        "time": [one.time for one in each], "parent": fid_words([one.parent for one in each]),
        "target": fid_words([(one.source or one.target) if one.type is RecordType.RENAME else one.target
                             for one in each]),
        "job": _words(np.array([one.job_id for one in each], "S32")), "nid": [nid(one.nid) for one in each],
        "mode": [one.open_mode or 0 for one in each], "name_at": text_bytes + np.cumsum(sizes) - sizes,
        "name_bytes": sizes}
    for name, values in found.items():
        columns[name][rows] = values
    return names
