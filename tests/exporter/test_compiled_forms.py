"""Requests and counters read by a form that was compiled are the same as without, whatever may be printed."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.connections import OSC, StatsLines
from exporter.counters import StatsPlanner, StatsRule
from exporter.exposition import MetricsPage
from exporter.forms import RpcForm, StatsForm, rpc_forms, stats_forms
from exporter.sources import joined
from exporter.totals import stats_contributions
from lustre.formats import compiled, rpc_stats, stats
from lustre.formats.outline import LONGEST, Forms
from tests.damaged import any_text, damage, damaged, renumbered, renumbering, texts

if not compiled.AVAILABLE:
    pytest.skip("the modules in C were not built: no compiler, or no Python.h", allow_module_level=True)

TREE = "2.17.57/tree-load-1"


def rpcs_agree(forms: Forms[RpcForm], text: bytes, like: RpcForm | None = None) -> RpcForm | None:
    found = forms.read(text, like)
    if found is None:
        return None
    form, numbers, start = found
    parsed = rpc_stats.parse(text)
    keys, values = OSC.rpcs.counts(parsed)
    assert (start, parsed.skipped) == (parsed.start_time, 0)
    assert dict(zip(form.keys, form.counts(numbers), strict=True)) == dict(zip(keys, values, strict=True))
    assert form.samples(numbers) == list(OSC.rpcs.gauges(parsed))
    return form


def agree_when_changed(agree, text, damages, numbers, every, cut) -> None:
    """Also when it is changed after it was read, and as the first that is read."""
    like = agree(text)
    for changed in (renumbered(text, numbers, every), text[:cut], *(damaged(text, *one) for one in damages)):
        agree(changed, like)
        agree(changed)


@any_text
@given(st.integers(0, 99), st.lists(damage, max_size=2), renumbering, st.integers(1, 9), st.integers(0, 5000))
def test_rpcs_of_a_form(capture, which, damages, numbers, every, cut) -> None:
    known = texts(capture(TREE), "rpc_stats")
    text = known[which % len(known)]
    agree_when_changed(partial(rpcs_agree, rpc_forms(OSC.rpcs)), text, damages, numbers, every, cut)


def test_recorded_rpcs_have_a_form_as_soon_as_anything_was_sent(capture) -> None:
    forms = rpc_forms(OSC.rpcs)
    known = [text for text in texts(capture(TREE), "rpc_stats") if OSC.rpcs.counts(rpc_stats.parse(text))[1]]
    found = [rpcs_agree(forms, text) for text in known if b"DIO" in text]
    assert len(found) > 3
    assert None not in found


def stats_agree(
        forms: Forms[StatsForm], planner: StatsPlanner, text: bytes, like: StatsForm | None = None) -> StatsForm | None:
    found = forms.read(text, like)
    if found is None:
        return None
    form, numbers, start = found
    parsed = stats.parse(text)
    plan, columns = planner.plan(parsed)
    assert (start, parsed.skipped) == (parsed.start_time, 0)
    assert form.plan is plan
    assert numbers == tuple(map(int, plan.pick(columns)))
    assert joined([form.row(b'fs="a"', numbers)]) == plan.lines(b'fs="a"', numbers)
    return form


@any_text
@given(st.integers(0, 999), st.lists(damage, max_size=2), renumbering, st.integers(1, 9), st.integers(0, 5000))
def test_stats_of_a_form(capture, which, damages, numbers, every, cut) -> None:
    known = texts(capture(TREE), "stats")
    text = known[which % len(known)]
    planner = StatsPlanner(OSC.rule)
    agree_when_changed(partial(stats_agree, stats_forms(planner), planner), text, damages, numbers, every, cut)


def test_recorded_stats_have_a_form(capture) -> None:
    planner = StatsPlanner(StatsRule(OSC.rule.operations, OSC.rule.seconds))
    forms = stats_forms(planner)
    known = [text for text in texts(capture(TREE), "stats") if stats.parse(text).names]
    found = [stats_agree(forms, planner, text) for text in known]
    assert sum(form is not None for form in found) > 0.9 * len(found) > 20


def test_a_header_with_two_start_times_has_no_form(capture) -> None:
    known = texts(capture(TREE), "stats") + texts(capture(TREE), "rpc_stats")
    timed = [text for text in known if text.count(b"start_time") == 1]
    assert len(timed) > 20
    for text in timed:
        line = next(line for line in text.splitlines(keepends=True) if b"start_time" in line)
        planner = StatsPlanner(OSC.rule)
        assert stats_agree(stats_forms(planner), planner, text.replace(line, 2 * line, 1)) is None
        assert rpcs_agree(rpc_forms(OSC.rpcs), text.replace(line, 2 * line, 1)) is None


@pytest.mark.parametrize("mount", [b"/mnt/lustre", b"/mnt/\x19", b"/" + b"x" * 20000])
def test_requests_of_a_target_whose_labels_fit_no_template_are_shown_all_the_same(capture, mount) -> None:
    text = next(text for text in texts(capture(TREE), "stats") if b"req_waittime" in text)
    contribution = stats_contributions(OSC.rule)(text, None)
    assert contribution.form is not None
    page, labels = MetricsPage(), b'mount="%b"' % mount
    StatsLines().put(page, {"a": labels}, {"a": contribution})
    plan, columns = StatsPlanner(OSC.rule).plan(stats.parse(text))
    assert dict(page.lines()) == dict(plan.lines(labels, map(int, plan.pick(columns))))


@pytest.mark.parametrize("name", ["n" * 20000, "n" * 70000, "a" * 31])
def test_huge_texts_are_read_as_usual(name) -> None:
    planner = StatsPlanner(OSC.rule)
    forms = stats_forms(planner)
    for rows in (1, 3, 3000):
        some = min(rows, 2 + LONGEST // len(name))  # more would be longer than the longest text with a form many times
        text = b"".join([b"%b%d  1 samples [usecs] 1 2 %d\n" % (name.encode(), row, row) for row in range(some)])
        form = stats_agree(forms, planner, text)
        assert (form is None) == (len(text) > LONGEST)
