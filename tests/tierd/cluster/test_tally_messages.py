"""Tallies on the wire: any tally comes back as it was, none is too large, and anything else is refused."""

import zlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from tests.damaged import any_text
from tierd.cluster.tallies import MAX_BYTES, decode, encode
from tierd.sense.changelogs.tallies import DirectoryTally, FileTally, OtherMove, Tally, TallyContent

counts = st.integers(0, 1 << 50)
times = st.floats(0, 1e10, allow_nan=False)
fids = st.builds(Fid, st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 32) - 1))
paths = names = st.binary(max_size=255)
jobs = st.text(max_size=31)
clients = st.lists(st.sampled_from(("10.0.0.1@tcp", "10.0.0.2@o2ib")), unique=True).map(tuple)


@st.composite
def contents(draw: st.DrawFn) -> TallyContent:
    files = draw(st.integers(0, 4))
    rows = [DirectoryTally(draw(jobs), draw(paths), draw(counts), draw(counts), draw(counts), draw(counts),
                           draw(counts), draw(counts), draw(times),
                           tuple(draw(st.lists(st.integers(0, files - 1), max_size=3))) if files else (),
                           draw(clients)) for _ in range(draw(st.integers(1, 3)))]
    return TallyContent(
        tuple(rows),
        tuple(FileTally(draw(fids), draw(st.integers(0, len(rows) - 1)), draw(paths), draw(names), draw(st.booleans()),
                        draw(counts), draw(counts), draw(times), draw(times)) for _ in range(files)),
        tuple(draw(st.lists(fids, max_size=3))),
        tuple(draw(st.lists(st.builds(OtherMove, paths, jobs, times, fids, st.none() | st.integers(0, 99),
                                      st.just("10.0.0.1@tcp")), max_size=3))),
        draw(st.booleans()))


tallies = st.builds(Tally, st.just("MDT0000"), counts, counts, counts, jobs, counts, counts, st.booleans(),
                    st.booleans(), times, times, jobs, jobs, contents())


@given(tallies)
def test_a_tally_comes_back_as_it_was(tally) -> None:
    assert decode(encode(tally)) == tally


EMPTY = Tally("MDT0000", 0, 5, 5, "r1", 1, 0, False, True, 1.0, 2.0)


def large(files: int, name_bytes: int) -> Tally:
    """A tally of files with names that cannot be compressed well."""
    random = Random(1)
    made = tuple(FileTally(Fid(0x200000400 + number, number), 0, b"/in", random.randbytes(name_bytes), True, 0, 0,
                           number * 1.1, 2.0) for number in range(files))
    rows = (DirectoryTally("a.1", b"/in", files, files=tuple(range(files))),)
    return EMPTY.replaced(content=TallyContent(rows, made))


def test_a_tally_that_would_be_too_large_leaves_files_out_and_no_counts() -> None:
    data = encode(large(20_000, 255))
    assert len(data) <= MAX_BYTES
    found = decode(data)
    assert found.content.directories[0].creates == 20_000
    assert 0 < len(found.content.files) < 20_000
    assert len(found.content.directories[0].files) == len(found.content.files)


@any_text
@given(st.binary(max_size=200), st.integers(0, 400), st.booleans())
def test_anything_else_is_refused(data, at, packed) -> None:
    good = zlib.decompress(encode(large(3, 5)))
    broken = good[:at] + data + good[at + len(data):]
    sent = zlib.compress(broken) if packed else data
    try:
        found = decode(sent)
    except ValueError:
        return
    assert isinstance(found, Tally)


@pytest.mark.parametrize(("data", "words"), [
    (b"", "tally"), (b"x", "tally"), (zlib.compress(b"\x80"), "tally"), (zlib.compress(b" " * (33 << 20)), "or cut"),
    (b"x" * (1 << 20), "a tally of 1048576"), (zlib.compress(b"\x81\xa1x" + b"\x91" * 100_000), "tally"),
    (encode(EMPTY)[:-1], "or cut"),
    (encode(EMPTY.replaced(content=large(1, 5).content.replaced(files=()))), "position")])
def test_bad_ones(data, words) -> None:
    with pytest.raises(ValueError, match=words):
        decode(data)


def test_a_newer_version_is_refused() -> None:
    plain = zlib.decompress(encode(EMPTY))
    with pytest.raises(ValueError, match="version"):
        decode(zlib.compress(plain.replace(b"version\x01", b"version\x02")))
