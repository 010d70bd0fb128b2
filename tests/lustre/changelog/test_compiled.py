"""What is decoded in C is what is decoded one by one: recorded, made up, cut, damaged, or no changelog at all."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustre.changelog.decode import (
    AVAILABLE,
    EXTRA,
    PackedRecords,
    Take,
    decode,
    form,
    last_index,
    newest_time,
    packed_pieces,
    pieces,
    some,
    take,
)
from lustre.changelog.encode import encode
from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from tests.damaged import damage, damaged
from tests.lustre.changelog.test_properties import MADE, records

if not AVAILABLE:
    pytest.skip("the module in C was not built: no compiler, or no Python.h", allow_module_level=True)

from lustre.changelog import _records

RECORDED = sorted((Path(__file__).parent.parent.parent / "captures" / "2.17.57" / "changelog").glob("*.chardev.bin"))
damages = st.lists(damage, min_size=1, max_size=3)
MAKE = Record, Fid, tuple(RecordType), lambda nid, large: f"{nid.hex()} {large}"


def one_by_one(_data: bytes, at: int, _records: list[Record], _most: int) -> int:
    return at


def outcome(data: bytes, at: int, most: int, quickly: Take) -> tuple[str, list[str], int]:
    """The records with all their types, or the error."""
    try:
        found, end = some(data, at, most, quickly)
    except ValueError as error:
        return str(error), [], at
    assert {type(record) for record in found} <= {Record}
    assert {(type(record.type), type(record.target), type(record.time)) for record in found} <= {
        (RecordType, Fid, float)
    }
    return "", [repr(record) for record in found], end


def same(data: bytes, at: int = 0, most: int = 1 << 62) -> None:
    expected = outcome(data, at, most, one_by_one)
    assert outcome(data, at, most, take) == expected


def taken(data: bytes) -> int:
    """Bytes that are decoded in C without asking anybody."""
    return take(data, 0, [], 1 << 62)


def test_types_are_known_by_their_number() -> None:
    assert list(RecordType) == list(range(len(RecordType)))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_records_and_every_cut_of_them(path) -> None:
    data = path.read_bytes()
    same(data)
    assert taken(data) == len(data)
    for end in range(min(len(data), 6000)):
        same(data[:end])


@settings(max_examples=200)
@given(st.lists(records(), max_size=6), st.integers(0, 7), st.integers(0, 5000))
def test_any_records(several: list[Record], most: int, cut: int) -> None:
    data = b"".join(map(encode, several))
    same(data)
    same(data, most=most)
    same(data[:cut])
    same(b"-" + data, at=1)
    if all(record.type < len(RecordType) for record in several):
        assert taken(data) == len(data)


@settings(max_examples=600)
@given(st.sampled_from(RECORDED), st.integers(0, 1 << 20), st.integers(0, 3000), damages)
def test_damage(path: Path, first: int, length: int, several) -> None:
    data = path.read_bytes()
    first %= len(data)
    changed = data[first : first + length]
    for one in several:
        changed = damaged(changed, *one)
        same(changed)


@settings(max_examples=400)
@given(st.integers(0, 15), st.integers(0, 70), st.integers(0, 40), st.binary(max_size=800), st.integers(0, 600))
def test_every_set_of_flags_over_anything(extensions: int, extra: int, kind: int, rest: bytes, name: int) -> None:
    head = struct.pack("<HHI", name, extensions << 12 | 0x421, kind)
    same(head + rest)
    extra_at = form(extensions & ~EXTRA, 0).size - 8
    same(head + rest[:extra_at] + struct.pack("<Q", extra) + rest[extra_at:])


@given(st.binary(max_size=500), st.binary(max_size=300))
def test_what_is_no_changelog(data: bytes, more: bytes) -> None:
    same(data)
    same(encode(MADE) + data)
    same(encode(MADE._replace(uid=1, gid=2, nid="10.0.0.1@tcp", job_id=b"j")) + data + more)


@given(st.lists(records(), max_size=9), st.integers(1, 4), st.binary(max_size=70))
def test_pieces_are_the_whole(several: list[Record], most: int, rest: bytes) -> None:
    data = b"".join(map(encode, several)) + rest
    found: list[Record] = []
    problem = ""
    try:
        for piece in pieces(data, most):
            assert 0 < len(piece) <= most
            found += piece
    except ValueError as error:
        problem = str(error)
    if several:
        whole, end = decode(data)
        assert found == whole
        assert bool(problem) == (outcome(data, end, 1, one_by_one)[0] != "")


def as_pieces(several: Iterator[Sequence[Record]]) -> tuple[list[tuple[object, ...]], str]:
    """What is known of each piece before and after it is decoded, and the error that ends them."""
    found: list[tuple[object, ...]] = []
    try:
        for piece in several:
            times = [record.time for record in list(piece)]
            oldest = piece.oldest_time if isinstance(piece, PackedRecords) else min(times)
            found.append((len(piece), last_index(piece), newest_time(piece), oldest, list(piece), piece[0], piece[-1:]))
    except ValueError as error:
        return found, str(error)
    return found, ""


@given(st.lists(records(), max_size=9), st.integers(1, 4), st.binary(max_size=70), st.lists(damage, max_size=2))
def test_packed_pieces_are_the_pieces(several: list[Record], most: int, rest: bytes, damages) -> None:
    data = b"".join(map(encode, several)) + rest
    for one in damages:
        data = damaged(data, *one)
    assert as_pieces(packed_pieces(data, most)) == as_pieces(pieces(data, most))
    assert as_pieces(packed_pieces(data, most, None)) == as_pieces(pieces(data, most))


def test_records_are_measured_without_decoding_them() -> None:
    first = MADE._replace(index=7, time=5.0, nanosecond=0)
    data = encode(first) + encode(first._replace(index=9, time=4.0))
    assert _records.measure(data, 0, 9) == (len(data), 2, 9, 4.0, 5.0)
    assert _records.measure(data, 0, 1)[:3] == (len(data) // 2, 1, 7)
    assert _records.measure(data[:-1], len(data) // 2, 9) == (len(data) // 2, 0, 0, float("inf"), 0.0)


@pytest.mark.parametrize("wrong", [("", 0, 9), (b"", "", 9), (b"", 0, None), (b"", 0)])
def test_what_is_no_call_to_measure(wrong) -> None:
    with pytest.raises(TypeError):
        _records.measure(*wrong)
    with pytest.raises(ValueError, match="in the data"):
        _records.measure(b"", 1, 9)


def test_many_of_everything_are_distinguished() -> None:
    many = [
        Record(n, RecordType.OPEN, n + 0.5, target=Fid(n % 700, n), parent=Fid(0, n % 300), name=b"%d" % n,
               job_id=b"j%d" % (n % 301), uid=n % 3, gid=n, nid=f"10.0.{n % 7}.{n % 5}@tcp", open_mode=n % 2,
               nanosecond=500_000_000)
        for n in range(2000)
    ]  # fmt: skip
    data = b"".join(map(encode, many))
    assert decode(data) == (many, len(data))
    assert taken(data) == len(data)


def test_what_a_kernel_leaves_behind_the_end_of_a_job_id_is_not_part_of_it() -> None:
    first, second = (bytearray(encode(MADE._replace(job_id=b"cp.0"))) for _ in range(2))
    second[64 + 5 : 64 + 32] = b"x" * 27
    found, _ = decode(bytes(first + second))
    assert [record.job_id for record in found] == [b"cp.0", b"cp.0"]


def test_a_nid_nobody_can_print_ends_it_with_the_records_before() -> None:
    def refusing(nid: bytes, large: bool) -> str:
        raise ValueError("no such network")

    found: list[Record] = []
    data = encode(MADE) + encode(MADE._replace(nid="10.0.0.1@tcp"))
    with pytest.raises(ValueError, match="no such network"):
        _records.take(data, 0, found, 9, (*MAKE[:3], refusing))
    assert [record.name for record in found] == [MADE.name]


@pytest.mark.parametrize("at", [-1, 70])
def test_a_byte_outside_the_data(at: int) -> None:
    with pytest.raises(ValueError, match="in the data"):
        _records.take(encode(MADE)[:69], at, [], 9, MAKE)


@pytest.mark.parametrize("wrong", [
    ("", 0, [], 9, MAKE), (b"", 0, (), 9, MAKE), (b"", "", [], 9, MAKE), (b"", 0, [], None, MAKE),
    (b"", 0, [], 9, None), (b"", 0, [], 9, MAKE[:3]), (b"", 0, [], 9, (int, *MAKE[1:])),
    (b"", 0, [], 9, (Record, str, *MAKE[2:])), (b"", 0, [], 9, (Record, Fid, [], MAKE[3])), (b"", 0, []),
])  # fmt: skip
def test_what_is_no_call(wrong) -> None:
    with pytest.raises(TypeError):
        _records.take(*wrong)
