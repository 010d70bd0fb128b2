"""What was compiled shows what is shown without: the same lines and numbers, whatever a kernel or a fault may print."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter import templates
from exporter.exposition import Counter, Histogram, single_values
from lustre.formats import compiled, header
from lustre.formats.opcodes import Opcode
from tests.damaged import texts

if not compiled.AVAILABLE:
    pytest.skip("the modules in C were not built: no compiler, or no Python.h", allow_module_level=True)
TREE = "2.17.57/tree-load-1"
NODE = b'fs="100%",target="OST0000"'
counts = st.lists(st.integers(0, 1 << 50), min_size=1, max_size=20)
keys = st.lists(st.sampled_from([b"\na: ", b"\nb: ", b"a", b"\n"]), max_size=7).map(tuple)
summands = st.lists(st.one_of(st.integers(0, 50), st.integers(-(1 << 66), 1 << 66), st.just((1 << 63) - 1)), max_size=6)


A = Counter("a_total", "", ("fs", "x"), "")


def packed(*shared: bytes) -> tuple[bytes, ...]:
    found = templates.packed(shared)
    assert found is not None
    return found


def filled(shared: bytes, values: tuple[int, ...], labels: bytes = b"") -> bytes:
    (text,) = compiled.fill_columns([(packed(shared), labels, values)])
    return text


def test_templates_and_rows_that_cannot_be_printed_are_refused() -> None:
    one = packed(b"\x19\n")
    assert templates.packed([b"\x19\n", b"x" * (1 << 16)]) is None
    with pytest.raises(ValueError, match="more values"):
        compiled.fill_columns([(one, b"", (1,)), (one, b"", (1, 2, 3))])
    with pytest.raises(ValueError, match="as many templates"):
        compiled.fill_columns([(one, b"", (1,)), ((*one, *one), b"", (1, 2))])
    for wrong in ([b"a"], b"a", (1,)):
        with pytest.raises(TypeError):
            compiled.pack_each(wrong)  # type: ignore[arg-type]
    wrong_rows = ((), 1, (one, b""), (one, "", (1,)), (one, b"", [1]), ((1,), b"", ()), ([*one], b"", (1,)))
    bad: Any
    for bad in ((), *[[row] for row in wrong_rows]):
        with pytest.raises(TypeError):
            compiled.fill_columns(bad)
    for bad in ((one[0], [b""], []), (one[0], [1], [1]), (one, [b""], [1]), (one[0], (b"",), [1])):
        with pytest.raises(TypeError):
            compiled.fill_numbers(*bad)
    assert compiled.fill_columns([]) == []


@given(st.lists(st.tuples(st.binary(max_size=9), st.none() | st.integers(0, (1 << 64) - 1)), max_size=9))
def test_numbers_are_printed_for_each_label_that_has_one(known) -> None:
    (template,) = packed(templates.of_samples(A, Opcode.LABELS, [b""]))
    lines = b"".join([A.line(label or b"", value) if label else b"a_total{} %d\n" % value
                      for label, value in known if value is not None])  # fmt: skip
    assert compiled.fill_numbers(template, [label for label, _ in known], [value for _, value in known]) == lines


@given(counts, st.integers(0, 18), st.booleans())
def test_tables_are_printed_as_they_are_without(column, usual, overflow) -> None:
    family = Histogram("sizes", "", ("fs",), "", usual=single_values(usual))
    bounds = (*map(float, range(1, len(column))), float("inf") if overflow else float(len(column)))
    template = templates.of_table(family, Opcode.LABELS, [b',d="r"', b',d="w"'], bounds)
    both = [family.buckets(NODE + extra, bounds, column) for extra in (b',d="r"', b',d="w"')]
    assert filled(template, (*column, *column), NODE) == b"".join(both)


@given(st.integers(0, (1 << 64) - 1))
def test_numbers_and_seconds_are_printed_whole(value) -> None:
    for name, digits in (("a_total", b"%d" % value), ("seconds_total", b"%d.%06d" % divmod(value, 10**6))):
        template = templates.of_samples(Counter(name, "", ("fs",), ""), NODE, [b""])
        assert filled(template, (value,)) == b"%b{%b} %b\n" % (name.encode(), NODE, digits)


def test_numbers_that_do_not_fit_a_template_raise() -> None:
    template = b"a \x19 b \x1a\n"
    values: Any
    for values in ((), (1,), (1, 2, 3), (1, -2), (1, 1 << 64), (1, "2")):
        with pytest.raises((ValueError, OverflowError, TypeError)):
            filled(template, values)
    with pytest.raises(ValueError, match="fewer"):
        compiled.fill_columns([((b"\0\0\x19",), b"", ())])
    for wrong in (b"\xff\xff\x19a", b"\0\0\x07", b"\0"):
        with pytest.raises(ValueError, match="packed"):
            compiled.fill_columns([((wrong,), b"", (1,))])


@given(st.binary(max_size=200), st.integers(0, 200), st.integers(0, 200))
def test_a_mark_is_of_the_part_alone(text, begin, end) -> None:
    if begin <= end <= len(text):
        assert compiled.mark(text, begin, end) == compiled.mark(b"-" + text[begin:end] + b"-", 1, end - begin + 1)
        for place in range(begin, end):
            other = text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :]
            assert compiled.mark(other, begin, end) != compiled.mark(text, begin, end)
    else:
        with pytest.raises(ValueError, match="in the text"):
            compiled.mark(text, begin, end)


def test_a_mark_below_times_does_not_see_the_times(capture) -> None:
    known = texts(capture(TREE), "stats") + texts(capture(TREE), "rpc_stats")
    for text in known:
        rest = header.after(text)
        assert compiled.mark_below_times(text) == compiled.mark_below_times(rest)
        assert compiled.mark_below_times(text) == compiled.mark_below_times(b" snapshot_time: 9.5 secs\n" + text)
        assert compiled.mark_below_times(text) != compiled.mark_below_times(text + b"0")
    assert len({compiled.mark_below_times(text) for text in known}) == len({header.after(text) for text in known})


@given(st.text(st.sampled_from("ab: \n"), max_size=60), keys)
def test_following_equals_its_python_form(text, keys) -> None:
    assert compiled.following(text.encode(), keys) == compiled.plain_following(text.encode(), keys)


@given(summands, summands, summands, st.booleans(), st.integers(0, 2**63 - 1))
def test_growth_is_added_up_as_it_is_without(sums, before, now, rising, most) -> None:
    size = min(len(sums), len(before), len(now))
    sums, before, now = sums[:size], tuple(before[:size]), now[:size]
    if rising:
        now = list(map(max, before, now))
    expected = [*sums]
    assert compiled.grow(sums, before, now, most) == compiled.plain_grow(expected, before, now, most)
    assert sums == expected


@pytest.mark.parametrize("wrong", [((), [], []), ([], [], [1]), ([1], ["1"], [2]), ([1], [1], None), (["1"], [1], [2])])
def test_grow_refuses_wrong_types(wrong: Any) -> None:
    sums, before, now = wrong
    with pytest.raises(TypeError):
        compiled.grow(sums, before, now, 1 << 40)


def scraped(root: Path, flags: tuple[str, ...], *blocked: str) -> bytes:
    """What the exporter prints of a tree when these modules cannot be imported."""
    program = (f"import sys; sys.modules.update(dict.fromkeys({blocked!r})); "
               "from exporter.__main__ import main; main(sys.argv[1:])")  # fmt: skip
    arguments = ["--once", f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys", *flags]
    ran = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, check=True)
    lines = ran.stdout.splitlines(keepends=True)
    differ = b"lustre_exporter_", b"lustre_jobs_read_timestamp_", b"process_", b"python_"
    return b"".join([line for line in lines if not line.startswith(differ)])


@pytest.mark.parametrize(("flags", "least"), [(("--collector.osc.per-target",), 3000), (("--jobs.limit=3",), 1000)])
def test_an_installation_without_them_shows_the_same(capture, flags, least) -> None:
    root = capture(TREE)
    without = scraped(root, flags, "lustre.formats._texts", "exporter.jobs._lines")
    assert scraped(root, flags) == without
    assert without.count(b"\n") > least


@pytest.mark.parametrize("damaged", [b"snapshot_time junk\n", b"snapshot_time\n", b"start_time:: 5\n"])
def test_a_damaged_line_of_the_header_is_not_left_out_of_the_mark(damaged) -> None:
    assert compiled.mark_below_times(damaged + b"read 1\n") != compiled.mark_below_times(b"read 1\n")
    assert header.after(damaged + b"read 1\n") != b"read 1\n"
