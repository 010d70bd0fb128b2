"""What was compiled shows what is shown without: the same lines and numbers, whatever a kernel or a fault may print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter import printing
from exporter.bounds import counting
from exporter.counters import Planner, Rule
from exporter.families import Counter, Histogram
from exporter.forms import RpcForm, StatsForm, rpc_forms, stats_forms
from exporter.job_lines import Renderer
from exporter.job_numbers import NumbersReader
from exporter.jobs import FAMILIES, OPERATIONS, read_block, render, sums_left_out
from exporter.jobs import numbers as numbers_of
from exporter.osc import OSC
from exporter.page import Page
from exporter.per_target import StatsLines
from exporter.read_outs import stats_out
from exporter.rpcs import RpcKeys
from exporter.text_format import escape
from lustre.text import compiled, header, job_stats, rpc_stats, stats
from lustre.text.outline import LONGEST, Forms
from tests.exporter.test_job_lines import block, counters
from tests.spoilt import any_text, damage, renumbered, renumbering, spoilt, texts

if not compiled.AVAILABLE:
    pytest.skip("the modules in C were not built: no compiler, or no Python.h", allow_module_level=True)

from exporter import _job_lines

TREE = "2.17.57/tree-load-1"
NODE = b'fs="100%",target="OST0000"'
NAMES = tuple([family.name.encode() for family in FAMILIES[:5]])
IDS = st.one_of(
    st.sampled_from(["cp.0", '"4242:0:node1"', '"a\\x20b"', "a b", "ü", 'a"b', "a\\b", "", '"', "50%", '"a b"', '""']),
    st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=31),
)


RENDERER = Renderer()
COMPILED, PLAIN = NumbersReader(RENDERER), NumbersReader(RENDERER, None)


def same_numbers(text: bytes) -> None:
    """However they are read; what is not understood of counters at zero may go unnoticed where it is done quickly."""
    job = read_block(text)
    (start, keys, values, operations, whole), skipped = COMPILED.read(text)
    assert (start, keys, values, operations) == PLAIN.read(text)[0][:4]
    assert start == job.start_time
    assert dict(zip(keys, values, strict=True)) == dict(numbers_of(job))
    assert operations == sum([value for key, value in zip(keys, values, strict=True) if key[0] is OPERATIONS])
    assert 0 <= job.skipped + sums_left_out(job) - skipped <= text.count(b" samples:           0,")
    assert whole or job.skipped


def same_or_none(text: bytes) -> bool:
    same_numbers(text)
    found = _job_lines.lines(text, NODE, NAMES)
    if found is None:
        return False
    name, chunks = found
    job = read_block(text)
    assert name == escape(job.job_id)
    shown, skipped = render(job, b'%b,job="%b"' % (NODE, name))
    assert chunks == shown
    assert skipped <= text.count(b" samples:           0,")  # one listed twice, or of no unit
    return True


@settings(max_examples=600, deadline=None)
@given(st.lists(counters, max_size=9), IDS)
def test_jobs_of_any_counters(lines: list[str], job: str) -> None:
    same_or_none(block(*lines, job=job))


@any_text
@given(st.integers(0, 9999), st.lists(damage, max_size=2), renumbering, st.integers(1, 9), st.integers(0, 3000))
def test_recorded_jobs_spoilt(capture, which, damages, numbers, every, cut) -> None:
    known = [one for text in texts(capture(TREE), "job_stats")[:2] for one in job_stats.split(text)]
    text = renumbered(known[which % len(known)], numbers, every)
    for changed in (text, text[:cut], *(spoilt(text, *one) for one in damages)):
        if len(job_stats.split(changed)) == 1 and changed.endswith(b"\n"):
            same_or_none(changed)


@pytest.mark.parametrize("tree", ["tree-idle", "tree-load-1", "tree-load-2"])
def test_recorded_jobs_are_of_the_form_that_was_compiled(capture, tree) -> None:
    blocks = [one for text in texts(capture(f"2.17.57/{tree}"), "job_stats") for one in job_stats.split(text)]
    assert sum(map(same_or_none, blocks)) >= 0.9 * len(blocks)
    assert len([one for one in blocks if _job_lines.numbers(one)]) >= 0.9 * len(blocks)


def rpcs_agree(forms: Forms[RpcForm], text: bytes, like: RpcForm | None = None) -> RpcForm | None:
    found = forms.read(text, like)
    if found is None:
        return None
    form, numbers, start = found
    parsed = rpc_stats.parse(text)
    keys, values = RpcKeys(OSC.rpcs).flatten(parsed)
    assert (start, parsed.skipped) == (parsed.start_time, 0)
    assert dict(zip(form.keys, form.counts(numbers), strict=True)) == dict(zip(keys, values, strict=True))
    assert form.samples(numbers) == list(OSC.rpcs.gauges(parsed))
    return form


@any_text
@given(st.integers(0, 99), st.lists(damage, max_size=2), renumbering, st.integers(1, 9), st.integers(0, 5000))
def test_rpcs_of_a_form(capture, which, damages, numbers, every, cut) -> None:
    known = texts(capture(TREE), "rpc_stats")
    text = known[which % len(known)]
    forms = rpc_forms(OSC.rpcs)
    like = rpcs_agree(forms, text)
    for changed in (renumbered(text, numbers, every), text[:cut], *(spoilt(text, *one) for one in damages)):
        rpcs_agree(forms, changed, like)
        rpcs_agree(forms, changed)


def test_recorded_rpcs_have_a_form_as_soon_as_anything_was_sent(capture) -> None:
    forms = rpc_forms(OSC.rpcs)
    known = [text for text in texts(capture(TREE), "rpc_stats") if RpcKeys(OSC.rpcs).flatten(rpc_stats.parse(text))[1]]
    found = [rpcs_agree(forms, text) for text in known if b"DIO" in text]
    assert len(found) > 3
    assert None not in found


def stats_agree(
    forms: Forms[StatsForm], planner: Planner, text: bytes, like: StatsForm | None = None
) -> StatsForm | None:
    found = forms.read(text, like)
    if found is None:
        return None
    form, numbers, start = found
    parsed = stats.parse(text)
    plan, columns = planner.plan(parsed)
    assert (start, parsed.skipped) == (parsed.start_time, 0)
    assert form.plan is plan
    assert numbers == tuple(map(int, plan.pick(columns)))
    templates, printed = plan.templates(b'fs="a"'), plan.printing_templates(b'fs="a"')
    assert plan.printed(printed, numbers) == plan.fill(templates, plan.pick(columns))
    return form


@any_text
@given(st.integers(0, 999), st.lists(damage, max_size=2), renumbering, st.integers(1, 9), st.integers(0, 5000))
def test_stats_of_a_form(capture, which, damages, numbers, every, cut) -> None:
    known = texts(capture(TREE), "stats")
    text = known[which % len(known)]
    planner = Planner(OSC.rule)
    forms = stats_forms(planner)
    like = stats_agree(forms, planner, text)
    for changed in (renumbered(text, numbers, every), text[:cut], *(spoilt(text, *one) for one in damages)):
        stats_agree(forms, planner, changed, like)
        stats_agree(forms, planner, changed)


def test_recorded_stats_have_a_form(capture) -> None:
    planner = Planner(Rule(OSC.rule.operations, OSC.rule.seconds))
    forms = stats_forms(planner)
    known = [text for text in texts(capture(TREE), "stats") if stats.parse(text).names]
    found = [stats_agree(forms, planner, text) for text in known]
    assert sum(form is not None for form in found) > 0.9 * len(found) > 20


@pytest.mark.parametrize("mount", [b"/mnt/lustre", b"/mnt/\x01", b"/" + b"x" * 20000])
def test_requests_of_a_target_whose_labels_fit_no_template_are_shown_all_the_same(capture, mount) -> None:
    text = next(text for text in texts(capture(TREE), "stats") if b"req_waittime" in text)
    contribution = stats_out(OSC.rule)(text, None)
    assert contribution.form is not None
    page, labels = Page(), b'mount="%b"' % mount
    StatsLines().put(page, {"a": labels}, {"a": contribution})
    plan, columns = Planner(OSC.rule).plan(stats.parse(text))
    assert dict(page.lines()) == dict(plan.fill(plan.templates(labels), plan.pick(columns)))


counts = st.lists(st.integers(0, 1 << 50), min_size=1, max_size=20)


@given(counts, st.integers(0, 18), st.booleans())
def test_tables_are_printed_as_they_are_without(column, usual, overflow) -> None:
    family = Histogram("sizes", "", ("fs",), "", usual=counting(usual))
    bounds = (*map(float, range(1, len(column))), float("inf") if overflow else float(len(column)))
    template = printing.packed(printing.of_table(family, NODE, [b',d="r"', b',d="w"'], bounds))
    both = [family.buckets(NODE + extra, bounds, column) for extra in (b',d="r"', b',d="w"')]
    assert printing.fill(template, (*column, *column)) == b"".join(both)


@given(st.integers(0, (1 << 64) - 1))
def test_numbers_and_seconds_are_printed_whole(value) -> None:
    for unit in ("", "seconds"):
        template = printing.packed(printing.of_samples(Counter("a_total", "", ("fs",), "", unit), NODE, [b""]))
        digits = b"%d.%06d" % divmod(value, 10**6) if unit else b"%d" % value
        assert printing.fill(template, (value,)) == b"a_total{%b} %b\n" % (NODE, digits)


def test_what_does_not_fit_a_template_is_an_error_and_no_line() -> None:
    template = printing.packed(b"a \x01 b \x02\n")
    for values in ((), (1,), (1, 2, 3), (1, -2), (1, 1 << 64), (1, "2")):
        with pytest.raises((ValueError, OverflowError, TypeError)):
            printing.fill(template, values)
    with pytest.raises(ValueError, match="fewer"):
        printing.fill(b"\0\0\1", ())
    with pytest.raises(ValueError, match="packed"):
        printing.fill(b"\xff\xff\x01a", (1,))


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


@pytest.mark.parametrize("name", ["n" * 20000, "n" * 70000, "a" * 31])
def test_texts_beyond_all_measure_are_read_as_ever(name) -> None:
    planner = Planner(OSC.rule)
    forms = stats_forms(planner)
    for rows in (1, 3, 30000):
        text = b"".join([b"%b%d  1 samples [usecs] 1 2 %d\n" % (name.encode(), row, row) for row in range(rows)][:3000])
        form = stats_agree(forms, planner, text)
        assert (form is None) == (len(text) > LONGEST)


keys = st.lists(st.sampled_from([b"\na: ", b"\nb: ", b"a", b"\n"]), max_size=4).map(tuple)


@given(st.text(st.sampled_from("ab: \n"), max_size=60), keys)
def test_what_follows_keys_is_found_alike(text, keys) -> None:
    assert compiled.following(text.encode(), keys) == compiled._following(text.encode(), keys)


summands = st.lists(st.one_of(st.integers(0, 50), st.integers(-(1 << 66), 1 << 66), st.just((1 << 63) - 1)), max_size=6)


@given(summands, summands, summands, st.booleans())
def test_growth_is_added_up_as_it_is_without(sums, before, now, rising) -> None:
    size = min(len(sums), len(before), len(now))
    sums, before, now = sums[:size], tuple(before[:size]), now[:size]
    if rising:
        now = list(map(max, before, now))
    expected = [*sums]
    assert compiled.grow(sums, before, now) == compiled.plain_grow(expected, before, now)
    assert sums == expected


@pytest.mark.parametrize("wrong", [((), [], []), ([], [], [1]), ([1], ["1"], [2]), ([1], [1], None), (["1"], [1], [2])])
def test_what_cannot_be_added_up_is_an_error(wrong) -> None:
    with pytest.raises(TypeError):
        compiled.grow(*wrong)


def scraped(root: Path, flags: tuple[str, ...], *blocked: str) -> bytes:
    """What the exporter prints of a tree when these modules cannot be imported."""
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({blocked!r}))\n"
        "from exporter.__main__ import main\n"
        "main(sys.argv[1:])\n"
    )
    asked = ["--once", f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys", *flags]
    ran = subprocess.run([sys.executable, "-c", program, *asked], capture_output=True, check=True)
    lines = ran.stdout.splitlines(keepends=True)
    return b"".join([line for line in lines if not line.startswith((b"lustre_exporter_", b"process_", b"python_"))])


@pytest.mark.parametrize(("flags", "least"), [(("--collector.osc.per-target",), 3000), (("--jobs.limit=3",), 1000)])
def test_an_installation_without_them_shows_the_same(capture, flags, least) -> None:
    root = capture(TREE)
    without = scraped(root, flags, "lustre._texts", "exporter._job_lines")
    assert scraped(root, flags) == without
    assert without.count(b"\n") > least
