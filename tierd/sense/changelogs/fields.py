"""The fields of those changelog records that the activity table counts, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from lustre.changelog.record import Record, RecordType
from tierd.loads import Bools, Floats, Ints
from tierd.sense.changelogs.files import Bytes, fid_words
from tierd.sense.changelogs.index import Words
from tierd.sense.changelogs.packed import PackedRecords

CREATE, OPEN, CLOSE, UNLINK, RENAME, LAYOUT, MKDIR = _KINDS = tuple(int(kind) for kind in (
    RecordType.CREATE, RecordType.OPEN, RecordType.CLOSE, RecordType.UNLINK, RecordType.RENAME, RecordType.LAYOUT,
    RecordType.MKDIR))


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """A row for each record."""

    kind: Ints
    time: Floats
    target: Words
    """FID. Of a rename, that of what was renamed."""
    parent: Words
    job: Words
    nid: Ints
    """Number of the client."""
    mode: Ints
    """Flags of an open."""
    name_at: Ints
    """Where the name begins in the text."""
    name_bytes: Ints
    number: Ints
    """Which of the records this is."""

    def __len__(self) -> int:
        return len(self.kind)

    def at(self, which: Ints | Bools | slice) -> Fields:
        return Fields(*(getattr(self, field.name)[which] for field in fields(self)))


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
    packed = records if isinstance(records, PackedRecords) else None
    kinds = packed.fields["type"].astype(np.int64) if packed is not None else np.array(
        [record.type for record in records], np.int64)
    which = np.flatnonzero(np.isin(kinds, _KINDS))
    if packed is None:
        found, regular, text = _empty(kinds[which], which), np.zeros(len(which), bool), b""
        record: Callable[[int], Record] = records.__getitem__
    else:
        found, regular, text = _regular(packed, kinds[which], which, nids)
        record = packed.decoded
    names = _decode(found, np.flatnonzero(~regular), record, nid, len(text))
    return CountedRecords(found, np.frombuffer(b"".join((text, *names)), np.uint8), record)


def _empty(kind: Ints, which: Ints) -> Fields:
    count = len(which)
    none = np.zeros(count, np.int64)
    return Fields(kind, np.zeros(count), np.zeros((count, 2), np.uint64), np.zeros((count, 2), np.uint64),
                  job=np.zeros((count, 4), np.uint64), nid=none.copy(), mode=none.copy(), name_at=none.copy(),
                  name_bytes=none.copy(), number=which)


def _words(column: NDArray[np.void]) -> Words:
    return np.ascontiguousarray(column).view(np.uint64).reshape(len(column), column.dtype.itemsize // 8)


def _regular(packed: PackedRecords, kind: Ints, which: Ints, nids: Callable[[Words], Ints]) -> tuple[
        Fields, Bools, bytes]:
    """Fields of records, as far as they are regular; which of them are; and the text with their names."""
    fields_of = packed.fields[which]
    regular, opened = packed.regular(fields_of)
    begins, starts = packed.names(which, opened), np.asarray(packed.starts)
    nid = np.zeros(len(which), np.int64)
    nid[regular] = nids(_words(fields_of["nid"][regular]))
    return Fields(
        kind, packed.times[which], _words(fields_of["target"]), _words(fields_of["parent"]),
        job=_words(fields_of["job_id"]), nid=nid,
        mode=np.where(opened, fields_of["open_mode"], 0).astype(np.int64), name_at=begins,
        name_bytes=starts[which + 1] - begins, number=which), regular, packed.data


def _decode(found: Fields, rows: Ints, record: Callable[[int], Record], nid: Callable[[str], int],
            text_bytes: int) -> list[bytes]:
    """Put in the fields of decoded records. Returns their names, which come behind the text."""
    each = [record(number) for number in found.number[rows].tolist()]
    if not each:
        return []
    names = [one.name for one in each]
    sizes = np.array([len(name) for name in names])
    found.time[rows] = [one.time for one in each]
    found.target[rows] = fid_words([(one.source or one.target) if one.type is RecordType.RENAME else one.target
                                    for one in each])
    found.parent[rows] = fid_words([one.parent for one in each])
    found.job[rows] = _words(np.array([one.job_id for one in each], "S32"))
    found.nid[rows] = [nid(one.nid) for one in each]
    found.mode[rows] = [one.open_mode or 0 for one in each]
    found.name_at[rows], found.name_bytes[rows] = text_bytes + np.cumsum(sizes) - sizes, sizes
    return names
