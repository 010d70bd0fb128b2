"""Any record survives being written and read, cut anywhere; what is not a changelog is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.changelog.record import Record, RecordType, decode
from lustre.fid import Fid
from lustre.nid import ANY, nid_text
from simulator.servers.changelog_bytes import encode, nid_bytes

U16, U32, U64 = ((1 << bits) - 1 for bits in (16, 32, 64))

fids = st.builds(Fid, st.integers(0, U64), st.integers(0, U32), st.integers(0, U32))
nids = st.builds(
    "{}@{}{}".format, st.ip_addresses(), st.sampled_from(("tcp", "o2ib", "efa")), st.integers(1, U16) | st.just("")
) | st.builds("{}@{}{}".format, st.integers(0, U32), st.sampled_from(("gni", "kfi", "lo")), st.integers(1, 9))


def words(longest: int, shortest: int = 0) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=shortest, max_size=longest).filter(lambda word: b"\0" not in word)


@st.composite
def records(draw: st.DrawFn) -> Record:
    source = draw(st.none() | fids)
    owner = draw(st.booleans())
    nanosecond = draw(st.integers(0, 999_999_999))
    return Record(
        index=draw(st.integers(0, U64)),
        type=RecordType(draw(st.integers(0, 30))),
        time=draw(st.integers(0, 1 << 33)) + nanosecond / 1e9,
        flags=draw(st.integers(0, 0xFFF)),
        target=draw(fids),
        parent=draw(fids),
        name=draw(words(255)),
        source=source,
        source_parent=None if source is None else draw(fids),
        source_name=b"" if source is None else draw(words(255)),
        job_id=draw(words(32)),
        uid=draw(st.integers(0, U64)) if owner else None,
        gid=draw(st.integers(0, U64)) if owner else None,
        nid=draw(st.just("") | nids),
        open_mode=draw(st.none() | st.integers(0, U32)),
        xattr_name=draw(words(256)),
        previous=draw(st.integers(0, U64)),
        nanosecond=nanosecond,
    )


@given(st.lists(records(), max_size=4))
def test_round_trip(several: list[Record]) -> None:
    data = b"".join(map(encode, several))
    assert decode(data) == (several, len(data))


@given(st.lists(records(), min_size=1, max_size=3), st.data())
def test_cut_anywhere(several: list[Record], data: st.DataObject) -> None:
    pieces = [encode(record) for record in several]
    whole = b"".join(pieces)
    end = data.draw(st.integers(0, len(whole)))
    found, consumed = decode(whole[:end])
    assert found == several[: len(found)]
    assert consumed == sum(map(len, pieces[: len(found)]))
    assert len(found) == len(several) or consumed + len(pieces[len(found)]) > end


@given(st.binary(max_size=400))
def test_junk_is_decoded_or_refused_by_name(data: bytes) -> None:
    try:
        found, consumed = decode(data)
    except ValueError as error:
        assert "byte" in str(error)  # noqa: PT017 - either outcome is right, a nameless error is not
    else:
        assert consumed <= len(data)
        assert len(found) <= len(data) // 64


MADE = Record(7, RecordType.CREATE, 1.5, name=b"x")


@pytest.mark.parametrize(("record", "problem"), [
    (MADE._replace(index=-1), "record -1: "),
    (MADE._replace(uid=-1), "record 7: "),
    (MADE._replace(nid="here"), "not a NID: 'here'"),
])
def test_an_impossible_record_is_refused(record: Record, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        encode(record)


def test_a_name_that_is_too_long_is_an_error_after_the_records_before_it() -> None:
    good = encode(MADE)
    bad = struct.pack("<HH", 513, 0x1000) + bytes(60)
    records, consumed = decode(good + bad)
    assert (len(records), consumed) == (1, len(good))
    with pytest.raises(ValueError, match="a name of 513 bytes at byte 0"):
        decode((good + bad)[consumed:])


def test_extensions_of_a_later_release_are_named_with_their_byte() -> None:
    bad = bytearray(encode(MADE._replace(uid=0, gid=0)))
    bad[64] |= 0x20
    with pytest.raises(ValueError, match="unknown extra flags 0x21 at byte 64"):
        decode(bytes(bad))


def test_a_type_of_a_later_release_is_kept() -> None:
    record = MADE._replace(type=RecordType(25), nanosecond=500_000_000)
    (again,), _ = decode(encode(record))
    assert (again, again.type.name, again.type.label) == (record, "TYPE_25", "TYPE_25")


@given(st.binary(min_size=24, max_size=24), st.booleans())
def test_any_24_bytes_are_a_nid(data: bytes, large: bool) -> None:
    assert nid_text(data, large).count("@") == 1 or nid_text(data, large) == ANY


@pytest.mark.parametrize(("text", "large", "data"), [
    ("0@lo", False, "0000000000000900" + "00" * 16),
    ("0@lo", True, "0009000000000000" + "00" * 16),
    ("10.1.2.3@tcp2", False, "0302010a02000200" + "00" * 16),
    ("10.1.2.3@tcp2", True, "000200020a010203" + "00" * 16),
    ("fe80::1@tcp", True, "0c020000" + "fe80" + "00" * 13 + "01" + "00" * 4),
    ("7f000001@<77:3>", False, "0100007f03004d00" + "00" * 16),
    (ANY, False, "ff" * 8 + "00" * 16),
])
def test_nid_forms(text: str, large: bool, data: str) -> None:
    assert nid_text(bytes.fromhex(data), large) == text
    if large == nid_bytes(text)[1]:
        assert nid_bytes(text)[0].hex() == data


@pytest.mark.parametrize("text", ["", "10.0.0.1", "10.0.0.1@", "10.0.0.1@nonet", "300.0.0.1@tcp", "x@lo", "1@gni99999"])
def test_an_invalid_nid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a NID"):
        nid_bytes(text)
