"""``tierctl top`` on a terminal: its sizes, hostile names, a daemon that does not answer, and the past."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tests.tierd.site import Site
from tierd.cli import client
from tierd.cli.top import follow
from tierd.cli.top_tables import Now, Past, Source
from tierd.daemon.answers import Ask
from tierd.daemon.client import ControlError, ask

HOSTILE = "[bold red]x[/]\x1b[2J\n\udcff"


def screens(asking: Ask, count: int = 1, source: Source | None = None, *, width: int = 80,
            height: int = 24) -> list[str]:
    """The first screens that somebody sees."""
    console, seen = Console(file=StringIO(), force_terminal=True, width=width, height=height), list[str]()

    def wait() -> None:
        assert isinstance(console.file, StringIO)
        seen.append(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue()))
        console.file.seek(0)
        console.file.truncate()
        if len(seen) == count:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        follow(asking, source or Now(1000), console, wait)
    return seen


def of(site: Site, change: Callable[[dict[str, Any]], object] = lambda _: None) -> Ask:
    def asking(request: Mapping[str, object]) -> dict[str, Any]:
        answer = ask(site.socket, request)
        change(answer)
        return answer

    return asking


def test_every_size_shows_what_fits(site: Site) -> None:
    site.run(until=35)
    for width, height, there, hidden in ((80, 24, "F1 noisy-neighbour.*TARGET .*JOB .*role", "…"),
                                         (60, 24, "TARGET .*ops/s .*JOB .*role", "user|…"),
                                         (60, 16, "TARGET .*4 more targets.*JOB .*ior_stream", "more jobs|…"),
                                         (20, 5, "tierd running", "JOB"),
                                         (200, 60, "JOB  +user", "more|…")):
        shown, = screens(of(site), width=width, height=height)
        assert re.search(there, shown, re.DOTALL), shown
        assert not re.search(hidden, shown), shown


def test_a_long_table_takes_the_lines_that_the_other_leaves(site: Site) -> None:
    site.run(until=35)
    shown, = screens(of(site, lambda answer: answer.update(
        jobs=[{**answer["jobs"][0], "job": f"many{number}"} for number in range(100)])), height=40)
    assert "more targets" not in shown
    assert "many10 " in shown
    assert re.search(r"and \d\d more jobs", shown) is None  # of the 2 that the daemon has


def test_names_are_no_markup_and_no_escape_sequences(site: Site) -> None:
    site.run(until=35)

    def change(answer: dict[str, Any]) -> None:
        answer["jobs"][0]["job"] = answer["targets"][0]["target"] = answer["paused"] = HOSTILE

    shown, = screens(of(site, change), width=120)
    assert shown.count(r"[bold red]x[/]\x1b[2J\n\udcff") == 3


def test_a_daemon_may_go_away_and_come_back(site: Site) -> None:
    site.run(until=35)
    asked = iter((of(site), None, lambda _: {"paused": 1}, of(site)))

    def asking(request: Mapping[str, object]) -> Mapping[str, object]:
        if (answer := next(asked)) is None:
            raise ControlError("/run/tierd/tierd.sock: no process listens")
        return answer(request)

    first, gone, odd, last = screens(asking, 4)
    assert "NO ANSWER: /run/tierd/tierd.sock: no process listens" in gone
    assert "NO ANSWER: tierd runs another release" in odd
    assert all("ior_stream.1002" in each for each in (first, gone, odd, last))
    assert "NO ANSWER" not in last


def test_the_past_is_played(site: Site) -> None:
    site.run(until=310)
    minute = site.cluster.epoch // 60 * 60
    first, second, third, *_, last, again = screens(of(site), 6, Past(minute - 250))
    for shown, before in ((first, 240), (second, 180), (third, 120), (last, 0), (again, 0)):
        assert f"REPLAY {client.time_text(minute - before)}" in shown
    assert re.search("ior_stream.1002 +0 B +66.3 MB", first)
    assert "F1 noisy-neighbour: ior_stream.1002 streamed" not in first
    assert "F1 noisy-neighbour: ior_stream.1002 streamed" in second
    then = datetime.fromtimestamp(minute - 190, UTC).isoformat()
    text = site.shown("top", "--replay", then)
    assert text.startswith(f"REPLAY {client.time_text(minute - 180)}")
    assert "mdt_small.1001" in text
