"""The history: moves of one case in one row, filters, and clear errors."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.port import Port
from tests.tierd.site import Site, failed, fetched, shown
from tierd.act.journal.reader import JournalReader, Wanted
from tierd.act.journal.writer import Journal
from tierd.acts import ActKind, Outcome
from tierd.daemon.answers import HistoryAnswer
from tierd.daemon.client import ask
from tierd.model import Action, Evidence, Finding

FLASH = Layout((Component(pool="flash"),), composite=False)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Two cases: a default layout and five moves, of which two did not succeed; one move."""
    made = Journal(tmp_path / "journal.sqlite")
    for number, moves in ((1, 5), (2, 1)):
        made.add_finding(Finding("noisy-neighbour", float(number), f"n.{number}", "s.1", (), "slow", Evidence()))
        default = Action(ActKind.SET_DEFAULT_LAYOUT, FLASH, "", ("", "", ""), directory=f"/d{number}")
        made.end(made.intend(default, number, None, 10.0 * number, False), Outcome.DONE, "", 10.0 * number)
        for move in range(moves):
            act = made.intend(Action(ActKind.MIGRATE, FLASH, "read", ("", "", ""), path=f"/d{number}/f{move}",
                                     size_bytes=100), number, None, 10.0 * number + move, False)
            made.end(act, Outcome.DONE if move < 3 else Outcome.GAVE_WAY, "", 50.0)
    return made


def test_several_moves_of_a_case_are_one_row(journal: Journal, tmp_path: Path) -> None:
    reader = JournalReader(tmp_path / "journal.sqlite")
    entries, (moves,) = reader.last_by_case(10, Wanted())
    assert [entry.place for entry in entries] == ["/d1", "/d2", "/d2/f0"]
    assert (moves.finding, moves.first_at, moves.last_at, moves.moved_bytes) == (1, 10.0, 14.0, 300)
    assert moves.outcomes == {"done": 3, "gave-way": 2}
    assert [act.place for act in reader.acts([moves.last_act])] == ["/d1/f4"]
    _, (done,) = reader.last_by_case(10, Wanted(outcome=Outcome.DONE))
    assert done.outcomes == {"done": 3}
    assert reader.last_by_case(10, Wanted(finding=2))[1] == []
    assert [entry.place for entry in reader.last(2, Wanted(finding=1))] == ["/d1/f3", "/d1/f4"]
    journal.close()


def test_page_and_tierctl_show_the_moves_of_a_case(reading: Site, capsys: pytest.CaptureFixture[str]) -> None:
    reading.run(until=reading.cluster.now + 30)
    answer = HistoryAnswer.from_json(ask(reading.socket, {"request": "history", "by_case": True}))
    (moves,) = answer.moves
    assert sum(moves.outcomes.values()) > 5
    (every,) = reading.sql("SELECT count(*) FROM actions")[0]
    assert answer.acts == every
    for path in ("/history", "/case/F1"):
        body = unescape(fetched(reading, path)[1])
        table = body.partition('aria-label="Table: Acts"')[2].partition("</table>")[0]
        rows = table.count("<tr>") - 1
        assert (rows, table.count("default layout of")) == (2, 1)
        assert f"{sum(moves.outcomes.values())} moves" in table
    each = fetched(reading, "/history?case=F1&act=migrate")[1]
    assert each.count("move of") == sum(moves.outcomes.values())
    assert "default layout of" not in each.partition("Table: Acts")[2]
    lines = shown(capsys, "history", "--case", "F1", "--act", "migrate", "--last", "999", site=reading).splitlines()
    assert sum(" migrate " in line for line in lines) == sum(moves.outcomes.values())
    assert "a case has the number of its finding (F3)" in failed(capsys, "history", "--case", "x", site=reading)
    assert f"{every} acts: " in fetched(reading, "/case/F1")[1]


def test_what_cannot_be_searched_is_an_error_and_not_ignored(serving: Callable[..., Port]) -> None:
    port = serving()
    for query, words in (("kind=migrate", "the history is not filtered by &#39;kind&#39;, but by path, job, case"),
                         ("since=yesterday", "is not a time"), ("last=0", "between 1 and 2000"),
                         ("last=99999", "between 1 and 2000"), ("last=x", "between 1 and 2000")):
        status, body, _ = port.request(f"/history?{query}")
        assert (status, words in body) == (400, True), (query, body)
    assert not [asked for asked in port.asked if asked["request"] == "history"]
