"""Page, status, explain, findings and report of one case have the same beginning, the same figures, the same end."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC
from html import unescape
from pathlib import Path

import pytest

from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site, fetched, shown
from tierd.cli import client
from tierd.daemon.answers import ReportAnswer
from tierd.daemon.client import ask
from tierd.daemon.report import report_lines

RATES = r"(\d+\.\d MB/s) instead of (\d+\.\d MB/s) \((\d+%)\)"
STREAMS = rf"stream(?:s|ed) at {RATES}"


@dataclass(frozen=True)
class View:
    """What one view says of the case."""

    found: str
    """Time of day when it was found."""
    rates: tuple[str, ...] | None
    """Of the victim: beside the aggressor, usual, and the share; None if the view has no sentence."""


def only(pattern: str, text: str) -> tuple[str, ...]:
    """The groups of a pattern, which must mean the same wherever it is found."""
    found = {each if isinstance(each, tuple) else (each,) for each in re.findall(pattern, text)}
    assert len(found) == 1, (pattern, found, text)
    return found.pop()


def card(site: Site, path: str = "/case/F1") -> str:
    """The card of the case on the page."""
    status, page = fetched(site, path)
    assert status == 200
    return unescape(page.partition("<article")[2].partition("</article>")[0])


def report_of(site: Site) -> str:
    """What ``tierctl report`` prints about the time of the simulator."""
    now = site.cluster.epoch
    answer = ReportAnswer.from_json(ask(site.socket, {"request": "report", "since": now - 4000, "until": now}))
    return "\n".join(report_lines(answer, lambda time: client.time_text(time, UTC)))


def views(site: Site, capsys: pytest.CaptureFixture[str], *, active: bool, acted: bool) -> dict[str, View]:
    page, explained = card(site), shown(capsys, "explain", "F1", "--utc", site=site)
    status, report = shown(capsys, "status", "--utc", site=site), report_of(site)
    seen = {
        "page": View(only(r"<dt>Found</dt><dd><time datetime=\"[\d-]+T(\S+)Z\"", page)[0], only(STREAMS, page)),
        "explain": View(only(r"found \S+ (\S+) UTC", explained)[0], only(STREAMS, explained.splitlines()[1])),
        "timeline": View(only(r"\n  (\S+) +FOUND", explained)[0], None),
        "report": View(only(r"F1  \S+ (\S+) UTC", report)[0], only(STREAMS, report))}
    if acted:
        seen["status"] = View(only(r"case F1: .* since \S+ (\S+) UTC", status)[0],
                              only(STREAMS, status) if active else None)
    if active:
        (finding,) = [each for each in ask(site.socket, {"request": "findings"})["findings"] if each["id"] == 1]
        time = finding["t"] - 86400 * (finding["t"] // 86400)
        clock = f"{time // 3600:02.0f}:{time % 3600 // 60:02.0f}:{time % 60:02.0f}"
        seen["findings"] = View(clock, only(STREAMS, finding["evidence"]["sentence"]))
        numbers = finding["evidence"]
        share = numbers["victim_bytes_per_second"] / numbers["victim_usual_bytes_per_second"]
        assert f"{100 * share:.0f}%" == seen["page"].rates[2]  # type: ignore[index]
        assert only(r"victim usual throughput: (\S+ MB/s)", explained) == seen["page"].rates[1:2]  # type: ignore[index]
    return seen


def assert_one_record(seen: dict[str, View]) -> View:
    """All views agree; returns what they say."""
    assert len({view.found for view in seen.values()}) == 1, seen
    assert len({view.rates for view in seen.values() if view.rates}) == 1, seen
    return seen["page"]


def test_all_views_of_a_case_agree_at_each_stage(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.run_until_said("SET", before=100)
    acting = assert_one_record(views(site, capsys, active=True, acted=True))
    site.run_until_said("KEPT", before=200)
    site.run(until=site.cluster.now + 5)
    ask_until_closed(site)
    assert assert_one_record(views(site, capsys, active=False, acted=True)) == acting
    page, status = card(site), shown(capsys, "status", site=site)
    explained, report = shown(capsys, "explain", "F1", site=site), report_of(site)
    before, after, part = only(r"([\d.]+ MB/s) before the acts, ([\d.]+ MB/s) after: "
                               r"(\d+% of the loss regained \(.*?\))", page)
    assert f"{before} before the acts, {after} after: {part}" in status
    assert f"; {part}." in explained
    assert f"{before} during, {after} after" in explained
    assert f"{before} during, {after} after" in report
    assert acting.rates is not None
    assert before == acting.rates[0]
    assert f"The victim had {acting.rates[1]} before" in explained
    assert acts_of(status) == "1 set-default-layout done"
    assert "1 set-default-layout done" in explained


def ask_until_closed(site: Site) -> None:
    while "closed" not in {case["state"] for case in ask(site.socket, {"request": "overview"})["cases"]}:
        site.run(until=site.cluster.now + 5)
        assert site.cluster.now < 400


def acts_of(status: str) -> str:
    return only(r"acts since start: ([^;]*);", status)[0]


def test_a_case_that_is_not_acted_on_keeps_its_beginning(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """The page had found it one second ago, whenever it was asked."""
    shown(capsys, "pause", "rack 7 is moved", site=site)
    site.run_until_said("FOUND", before=100)
    site.run(until=site.cluster.now + 5)
    first = assert_one_record(views(site, capsys, active=True, acted=False))
    site.run(until=site.cluster.now + 60)
    later = assert_one_record(views(site, capsys, active=True, acted=False))
    assert later.found == first.found
    assert "1 min ago" in card(site) or re.search(r"6\d s ago", card(site))
    (case,) = ask(site.socket, {"request": "overview"})["cases"]
    assert case["onset"] < case["since"] < case["curve"][-1][0] - 60


def test_a_closed_case_keeps_its_incident(tmp_path: Path, site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, replace(NOISE, stop_seconds=150.0))))
    site.run_until_said("KEPT", before=200)
    ask_until_closed(site)
    site.run(until=site.cluster.now + 90)
    (case,) = ask(site.socket, {"request": "overview"})["cases"]
    site.run(until=site.cluster.now + 2400)
    (later,) = ask(site.socket, {"request": "overview"})["cases"]
    assert later["curve"] == case["curve"]
    times = [time for time, _ in case["curve"]]
    assert times[0] < case["onset"] < case["acted_at"] < case["judged_at"] <= times[-1]
    assert case["ended_at"] <= times[-1] < max(case["ended_at"], case["judged_at"]) + 120
    page = card(site)
    assert "ior_stream.1002 streamed at " in page
    assert "streams at" not in page
    assert re.search(r"aggressor came <time.*layout set <time.*verdict <time", page)
    assert " now " not in page.partition("<dl")[0]
    assert "streams at" not in shown(capsys, "explain", "F1", site=site).splitlines()[1]


@pytest.mark.parametrize("restarted", [False, True])
def test_after_an_undo_nobody_claims_that_it_helped(
        restarted: bool, site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.run_until_said("KEPT", before=200)
    ask_until_closed(site)
    assert "helped" in shown(capsys, "status", site=site)
    if restarted:
        site.restart()
    shown(capsys, "undo", "F1", site=site)
    site.run(until=site.cluster.now + 10)
    explained = shown(capsys, "explain", "F1", site=site)
    said = [shown(capsys, "status", site=site), report_of(site), fetched(site, "/case/F1")[1],
            explained.partition("\n\n")[0] + explained.partition("Evidence:")[2]]
    for text in said:
        shown_text = re.sub(r"<li>.*?</li>", "", text)  # what was logged then
        assert "helped" not in shown_text
        assert "regained" not in shown_text
    assert "Verdict: undone by hand." in explained
    assert "undone by hand" in said[1]
