"""``tierctl report`` and the history: true, and no larger for a week than for an hour."""

import re
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

from lustre.layout.model import Component, Layout
from tests.tierd.port import Port
from tests.tierd.site import Site
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.acts import ActKind, Outcome
from tierd.cli.explain import report_lines
from tierd.daemon.answers import ReportAnswer
from tierd.daemon.client import ask
from tierd.model import Action, Evidence, Finding


def test_a_report_says_when_the_record_begins(site: Site) -> None:
    site.run(until=190)
    begun = datetime.fromtimestamp(site.cluster.epoch - 600, UTC).isoformat()
    assert re.search(r" \(no record before .*\); .*\n1 noisy-neighbour; ", site.shown("report", "--since", begun))
    assert "no record" not in site.shown("report", "--since", "6h")


def test_a_report_answers_in_the_terminal_what_was_done_and_whether_it_was_right(site: Site) -> None:
    site.run(until=130)
    now = site.cluster.epoch
    wanted = {"request": "report", "since": now - 200, "until": now}

    def lines() -> list[str]:
        return report_lines(ReportAnswer.from_json(ask(site.socket, wanted)), lambda time: f"{time:.0f}")

    head, sums, finding, verdict = lines()
    assert head == f"{now - 200:.0f} to {now:.0f}; running; mode full"
    assert sums.startswith("1 noisy-neighbour; 1 act, 0 files moved")
    assert finding.startswith("F1  ")
    assert "ior_stream.1002 streamed at" in finding
    assert re.fullmatch(r"    closed: helped; kept; \S+ MB/s before the acts, \S+ MB/s after: \d+% of .*", verdict)
    site.shown("undo", "F1")
    assert lines()[3] == "    closed: undone by hand"


def test_a_report_of_a_day_with_a_million_acts_is_as_large_as_one_of_an_hour(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    number = journal.add_finding(Finding("request", 1.0, "root", "", (), "root asked for it", Evidence()))
    layout = Layout((Component(pool="flash"),), composite=False)
    default = Action(ActKind.SET_DEFAULT_LAYOUT, layout, "", ("request", "root", ""), directory="/d")
    journal.intend(default, number, None, 1.0, False)
    for second in range(2, 1203):
        at = float(second)
        move = Action(ActKind.MIGRATE, layout, "", ("", "", ""), path="/f", size_bytes=10)
        act = journal.intend(move, number, None, at, False)
        journal.end(act, Outcome.DONE if second % 2 else Outcome.FAILED, "", at)
        journal.add_finding(Finding("submission", at, "rbh", "", (), "rbh hands over", Evidence()))
    reader = JournalReader(tmp_path / "journal.sqlite")
    found = reader.findings_between(0.0, 1e9, 500)
    assert (len(found), found[-1][1].time) == (500, 1202.0)
    assert reader.sums_of_period(2.0, 1001.0) == {
        "all_acts": 1000, "files_moved": 500, "bytes_moved": 5000, "kinds": {"submission": 1000}, "verdicts": {},
        "outcomes": {"migrate done": 500, "migrate failed": 500}}
    assert reader.sums_of_finding(number)["outcomes"]["set-default-layout under way"] == 1


def test_more_history_than_can_be_read_is_refused(site: Site) -> None:
    assert "history returns at most 10000 acts" in site.failed("history", "--last", "10001")


def test_page_and_tierctl_show_the_moves_of_a_case(reading: Site) -> None:
    reading.run(until=reading.cluster.now + 30)
    ((every, moved),) = reading.sql("SELECT count(*), sum(kind = 'migrate') FROM actions")
    each = unescape(reading.fetched("/history?case=F1&act=migrate")[1])
    assert each.count("move of") == moved > 5
    assert "default layout of" not in each.partition("Table: Acts")[2]
    lines = reading.shown("history", "--case", "F1", "--act", "migrate", "--last", "999").splitlines()
    assert sum(" migrate " in line for line in lines) == moved
    assert "a case has the number of its finding (F3)" in reading.failed("history", "--case", "x")
    assert f"{every} acts: " in reading.fetched("/case/F1")[1]


def test_what_cannot_be_searched_is_an_error_and_not_ignored(port: Port) -> None:
    for query, words in (("kind=migrate", "the history is not filtered by &#39;kind&#39;, but by path, job, case"),
                         ("since=yesterday", "is not a time"), ("last=5", "is not filtered by &#39;last&#39;")):
        status, body, _ = port.request(f"/history?{query}")
        assert (status, words in body) == (400, True), (query, body)
    assert not [asked for asked in port.asked if asked["request"] == "history"]
