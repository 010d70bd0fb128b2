"""Page, status, explain, findings, report and metrics say the same of one case at each of its stages."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest

from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import READ_AGAIN, Site
from tierd.cli import client
from tierd.cli.control import finding_lines
from tierd.cli.explain import report_lines
from tierd.config.act import Mode
from tierd.config.scopes import Scope
from tierd.daemon.answers import Case, ExplainAnswer, FindingsAnswer, OverviewAnswer, ReportAnswer, StatusAnswer
from tierd.daemon.curves import CASE_SECONDS
from tierd.text import evidence_text, rate_text

BARE: dict[str, Any] = {"curve": (), "time_before": None, "time_now": None}
"""What the lists of cases leave out."""


def only(pattern: str, text: str) -> str:
    """The group of a pattern, which must be the same wherever it is found."""
    found = set(re.findall(pattern, text, re.MULTILINE))
    assert len(found) == 1, (pattern, found, text)
    return str(found.pop())


def card(site: Site, name: str, path: str) -> str:
    """The card of a case on a page."""
    status, page = site.fetched(path)
    assert status == 200
    (found,) = re.findall(rf'<article[^>]* id="case-{name[1:]}".*?</article>', page, re.DOTALL)
    return unescape(str(found))


def report_of(site: Site) -> ReportAnswer:
    """The report about the time of the simulator."""
    now = site.cluster.epoch
    return ReportAnswer.from_json(site.ask("report", since=now - 4000, until=now))


def explained(site: Site, name: str = "F1") -> Case:
    return ExplainAnswer.from_json(site.ask("explain", id=name)).case


def clock(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%H:%M:%S")


def dated(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def one_record(site: Site, name: str = "F1") -> Case:
    """The record of a case, after a look at each view for another beginning, figure, count or state."""
    record = explained(site, name)
    sentence, done = record.sentence, record.done_text
    in_cards(site, record, name)
    status = site.shown("status", "--utc")
    listed = StatusAnswer.from_json(site.ask("status")).cases
    for case in [case for case in listed if case.finding == record.finding]:
        assert case == record.replaced(**BARE, why_not=case.why_not)
        assert only(rf"case {name}: .*, found (\S+ \S+ UTC):", status) == dated(record.since)
        assert f"UTC: {done}\n" in status
        assert not record.active or f"finding {name}: {sentence}\n" in status
    for case in OverviewAnswer.from_json(site.ask("overview")).cases:
        if case.finding == record.finding:
            assert case.replaced(**BARE) == record.replaced(**BARE, why_not=case.why_not)
    explanation = site.shown("explain", name, "--utc")
    assert only(r" found (\S+ \S+ UTC);", explanation) == dated(record.since)
    assert only(r"\n  (\S+) +FOUND", explanation) == clock(record.since)
    assert f"  {sentence}.\n" in explanation
    assert record.state_text in explanation
    assert record.gain_text in explanation
    assert record.files_text in explanation
    (case,) = [case for case in report_of(site).cases if case.finding == record.finding]
    assert case.replaced(why_not=()) == record.replaced(**BARE, why_not=())
    lines = report_lines(report_of(site), lambda time: client.time_text(time, UTC))
    assert f"{name}  {dated(record.since)}  {record.kind}: {sentence}" in lines
    assert record.gain_text in "\n".join(lines)
    in_findings(site, record, explanation)
    in_metrics(site, record, name)
    if not record.active:
        rest = re.sub(r"<li>.*?</li>", "", site.fetched(f"/case/{name}")[1])  # what was logged then
        for text in (rest, explanation.partition("Timeline")[0], sentence, done):
            assert " streams at " not in text
            assert " now " not in text
    return record


def in_cards(site: Site, record: Case, name: str) -> None:
    for path in ("/", f"/case/{name}"):
        if not re.search(rf'<article[^>]* id="case-{name[1:]}"', site.fetched(path)[1]):
            continue  # in a row of the overview
        said = card(site, name, path)
        assert only(r'<dt>Found</dt><dd><time datetime="[\d-]+T(\S+)Z"', said) == clock(record.since)
        assert f'<p class="sentence">{record.sentence}.</p>' in said
        assert f">{record.state_text}</span>" in said
        assert ("<dt>Effect</dt>" in said) == bool(record.gain_text)
        for text in (record.gain_text, record.files_text, *record.targets[:3]):
            assert text in said
        if record.ended_at:
            assert only(r'<dt>Ended</dt><dd><time datetime="[\d-]+T(\S+)Z"', said) == clock(record.ended_at)
        if len(record.curve) > 1:
            for word, time in (("aggressor started", record.onset), ("found", record.since),
                               ("layout set", None if record.dry_run or not record.defaults else record.acted_at),
                               ("verdict", record.judged_at)):
                assert time is None or only(rf'<span>{word} <time datetime="[\d-]+T(\S+)Z"', said) == clock(time)


def in_findings(site: Site, record: Case, explanation: str) -> None:
    answer = FindingsAnswer.from_json(site.ask("findings"))
    found = [each for each in answer.findings if each.finding == record.finding]
    assert bool(found) == record.active
    numbers = {"victim_usual_bytes_per_second": record.usual, "victim_bytes_per_second": record.contended,
               "loss_low": record.loss_low, "loss_high": record.loss_high}
    for finding in found:
        assert (finding.since, finding.targets, finding.sentence) == (record.since, record.targets, record.sentence)
        assert {key: finding.evidence[key] for key in numbers} == {
            key: value and round(value, 6) for key, value in numbers.items()}
        assert f"{record.kind}: {record.sentence}" in "\n".join(finding_lines(answer))
    for key, value in numbers.items():
        assert evidence_text(key, value) in explanation
    assert record.usual is not None
    assert record.contended is not None
    for rate in (record.usual, record.contended):
        assert rate_text(rate) in record.sentence
    assert f"{record.loss_low:.0%} to {record.loss_high:.0%}" in record.sentence


def in_metrics(site: Site, record: Case, name: str) -> None:
    _, text = site.fetched("/metrics")
    begun = re.findall(rf'^tierd_case_begun_timestamp_seconds{{(.*id="{name}".*)}} (\S+)$', text, re.MULTILINE)
    assert bool(begun) >= record.active
    for labels, value in begun:
        assert float(value) == pytest.approx(record.since, abs=1e-3)
        assert f'state="{record.state or "found"}"' in labels
        assert f'verdict="{record.verdict}"' in labels
    if not record.active:
        return
    for metric, value in (("usual", record.usual), ("", record.now)):
        said = only(rf"^tierd_victim_{metric}{'_' if metric else ''}bytes_per_second{{.*}} (\S+)$", text)
        assert float(said) == pytest.approx(value)
    assert float(only(r"^tierd_interference_slowdown{.*} (\S+)$", text)) == pytest.approx(
        (record.usual or 0) / (record.now or 1))


def nobody_claims_that_it_helped(site: Site) -> None:
    explanation, report = site.shown("explain", "F1"), "\n".join(report_lines(report_of(site), str))
    for text in (site.shown("status"), report,
                 re.sub(r"<li>.*?</li>", "", site.fetched("/case/F1")[1]),  # without what was logged then
                 explanation.partition("Timeline")[0] + explanation.partition("Evidence:")[2]):
        assert "helped" not in text
        assert "regained" not in text
    assert "undone by hand" in explanation
    assert "undone by hand" in report
    assert 'tierd_won_back_ratio{' not in site.fetched("/metrics")[1]


def test_all_views_agree_from_the_plan_that_waits_to_the_next_case(site: Site) -> None:
    site.restart(act={"mode": Mode.ASK})
    site.run_until_said("waits for approval", before=100)
    waiting = one_record(site)
    assert (waiting.state, waiting.active) == ("", True)
    assert waiting.onset is not None
    assert waiting.onset < waiting.since
    site.run(until=site.cluster.now + 30)
    assert one_record(site).since == waiting.since
    site.shown("apply", "F1")
    site.run_until_said("SET", before=site.cluster.now + 20)
    acting = one_record(site)
    assert acting.state in {"acting", "judging"}
    site.run_until_said("KEPT", before=site.cluster.now + 200)
    kept = one_record(site)
    assert kept.verdict == "helped"
    assert kept.contended == pytest.approx(acting.contended, rel=0.05)
    site.run_until(lambda: explained(site).state == "closed", before=400)
    site.run(until=site.cluster.now + 65)
    closed = one_record(site)
    assert closed.after is not None
    site.restart()
    site.run(until=site.cluster.now + 5)
    again = one_record(site)
    assert again.replaced(**BARE) == closed.replaced(**BARE)
    site.shown("undo", "F1")
    site.run(until=site.cluster.now + 5)
    undone = one_record(site)
    assert (undone.verdict, undone.after, undone.regained, undone.gain_text) == ("taken-back", None, None, "")
    nobody_claims_that_it_helped(site)
    site.run_until_said("FOUND", before=site.cluster.now + 300)
    second = one_record(site, "F2")
    assert (second.active, second.since > undone.since, second.verdict) == (True, True, "")
    assert one_record(site) == undone
    assert "Found again as F2 (20" in site.shown("explain", "F1")
    explanation = site.shown("explain", "F2")
    assert "Found before as F1 (20" in explanation
    assert "Found again" not in explanation


def test_all_views_agree_in_a_dry_run(site: Site) -> None:
    site.restart(act={"dry_run": True})
    site.run_until_said("WOULD SET", before=100)
    site.run(until=site.cluster.now + 5)
    assert one_record(site).state_text == "kept: dry run, nothing was changed"


def test_all_views_count_the_same_files(site: Site) -> None:
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, READ_AGAIN)))
    site.run_until_said("MOVED", before=150)
    moving = one_record(site)
    assert moving.moved > 0
    explanation = site.shown("explain", "F1")
    assert only(r"Acts: (\d+) migrate done", explanation) == str(moving.moved)
    assert f"{moving.moved} files moved" in explanation
    (act,) = site.sql("SELECT min(id) FROM actions WHERE kind = 'migrate' AND outcome = 'done'")
    site.shown("undo", str(act[0]))
    back = one_record(site)
    assert back.moves["undone"] == 1
    (done,) = site.sql("SELECT count(*) FROM actions WHERE kind = 'migrate' AND outcome = 'done'")
    assert back.moved == done[0]


def test_a_case_that_is_not_acted_on_says_why_and_keeps_its_beginning(site: Site) -> None:
    """The page had found it one second ago, whenever it was asked."""
    assert site.shown("pause", "rack 7 is moved").startswith("paused: rack 7 is moved\n")
    site.run_until_said("FOUND", before=100)
    site.run(until=site.cluster.now + 5)
    first = one_record(site)
    site.run(until=site.cluster.now + 60)
    later = one_record(site)
    assert later.since == first.since
    status, page = site.shown("status"), site.fetched("/")[1]
    assert status.startswith("PAUSED: rack 7 is moved")
    assert re.search(r"  case F1: .*: not acted on\n  not done: paused: rack 7 is moved", status)
    assert "Why nothing is done:" in page
    assert page.count("rack 7 is moved") >= 2
    assert "1 min ago" in card(site, "F1", "/") or re.search(r"6\d s ago", card(site, "F1", "/"))
    assert later.onset is not None
    assert later.onset < later.since < later.curve[-1][0] - 60
    site.shown("resume")
    site.run_until_said("SET default layout", before=site.cluster.now + 15)


def test_a_finding_that_returns_before_the_verdict_is_the_same_case(site: Site) -> None:
    """Findings and explain named it F2, while page, status and metrics went on with F1."""
    elsewhere = replace(NOISE, start_seconds=60.0, directory="/proj/other")
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, NOISE, elsewhere)))
    site.run_until_said("ended: ", before=60)
    first = one_record(site)
    assert (first.active, first.state) == (False, "judging")
    site.run_until_said("again: ", before=100)
    again = one_record(site)
    assert (again.active, again.since, again.ended_at, again.usual) == (True, first.since, None, first.usual)
    assert site.sql("SELECT count(*) FROM findings") == [(1,)]


def test_a_case_whose_finding_holds_is_known_after_a_reload(site: Site) -> None:
    """It was said not to be acted on, and was planned and counted anew."""
    site.settings = replace(site.settings, scopes=(Scope("/proj/other", Mode.OBSERVE),))
    elsewhere = replace(NOISE, start_seconds=105.0, directory="/proj/other")
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, NOISE, elsewhere)))
    site.run_until_said("KEPT", before=150)
    kept = one_record(site)
    assert (kept.state, kept.active, kept.verdict) == ("kept", True, "helped")
    memory = site.service.daemon.memory
    site.restart(limits={"files_per_second": 3.0})
    site.service.take_over(memory)
    site.run(until=site.cluster.now + 15)
    reloaded = one_record(site)
    assert (reloaded.active, reloaded.done_text, reloaded.defaults, reloaded.since, reloaded.judged_at) == (
        True, kept.done_text, kept.defaults, kept.since, kept.judged_at)


def test_a_closed_case_keeps_its_incident(site: Site) -> None:
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, replace(NOISE, stop_seconds=150.0))))
    site.run_until_said("KEPT", before=200)
    site.run_until(lambda: explained(site).state == "closed", before=400)
    site.run(until=site.cluster.now + 90)
    case = one_record(site)
    site.run(until=site.cluster.now + 1300)
    later = explained(site)
    assert later.curve
    assert set(later.curve) <= set(case.curve)
    assert later.curve[-1][0] > case.curve[-1][0] - 2 * CASE_SECONDS
    times = [time for time, _ in case.curve]
    assert case.onset is not None
    assert case.acted_at is not None
    assert case.judged_at is not None
    assert case.ended_at is not None
    assert times[0] < case.onset < case.acted_at < case.judged_at <= times[-1]
    assert case.ended_at <= times[-1] < max(case.ended_at, case.judged_at) + 120
    site.restart()
    site.run(until=site.cluster.now + 5)
    stored = explained(site).curve
    assert len(stored) > 10
    assert stored[0][0] < case.onset
    assert stored[-1][0] >= case.judged_at
    assert set(stored) <= set(case.curve)
    marks = r"aggressor started <time.*found <time.*layout set <time.*verdict <time"
    assert re.search(marks, card(site, "F1", "/case/F1"))


def test_a_restart_stores_no_point_of_a_curve_twice(site: Site) -> None:
    """It stored again what it had read from the journal, so each restart doubled the points of open cases."""
    site.run_until_said("SET ", before=200)
    site.run(until=site.cluster.now + 65)
    before = explained(site).curve
    site.restart()
    site.run(until=site.cluster.now + 65)
    times = [time for time, _ in explained(site).curve]
    assert len(set(times)) == len(times) > len(before) - 12
    assert site.sql("SELECT count(*) FROM samples WHERE series GLOB 'case *' GROUP BY time, series HAVING count(*) > 1"
                    ) == []
