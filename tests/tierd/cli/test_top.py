"""``tierctl top`` on a terminal: its tables, keys and sizes, hostile names, and a daemon that does not answer."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from threading import Event
from time import monotonic
from typing import Any

from textual.pilot import Pilot

from tests.tierd.site import Site
from tierd.cli import client
from tierd.cli.top_app import TopApp
from tierd.cli.top_tables import Now, Past, Source
from tierd.clock import SystemClock
from tierd.daemon.answers import Ask, Json
from tierd.daemon.client import ControlError, ask

LIMIT_SECONDS = 60.0
"""Of a wait for a screen: a busy machine fails no test."""


class Terminal:
    """Somebody who types and reads."""

    def __init__(self, app: TopApp, pilot: Pilot[None]) -> None:
        self._app, self._pilot = app, pilot

    @property
    def text(self) -> str:
        return "\n".join(strip.text for strip in self._app.screen._compositor.render_strips(self._app.size))

    async def shows(self, pattern: str, hidden: str = "$^", width: int = 0) -> str:
        """The screen as soon as it shows the one, does not show the other, and has this width."""
        until = monotonic() + LIMIT_SECONDS
        while (not re.search(pattern, text := self.text, re.DOTALL) or re.search(hidden, text)
               or {len(line) for line in text.splitlines()} - {width or self._app.size.width}):
            assert monotonic() < until, f"no {pattern!r}, or {hidden!r}, in\n{text}"
            await self._pilot.pause(0.01)
        return text

    async def press(self, *keys: str) -> str:
        await self._pilot.press(*keys)
        await self._pilot.pause()
        return self.text

    async def resize(self, width: int, height: int) -> None:
        await self._pilot.resize_terminal(width, height)


def on_terminal(asking: Ask, story: Callable[[Terminal], Awaitable[None]], width: int = 80, height: int = 24,
                clock: SystemClock | None = None, source: Source | None = None) -> None:
    async def told() -> None:
        app = TopApp(asking, source or Now(1000), 0.2, clock)
        async with app.run_test(size=(width, height)) as pilot:
            await story(Terminal(app, pilot))

    asyncio.run(told())


def of(site: Site) -> Ask:
    return lambda request: ask(site.socket, request)


def jobs_in(text: str) -> list[str]:
    return re.findall(r"^ ((?:mdt_small|ior_stream|many)\S*) ", text, re.MULTILINE)


def test_keys_sort_filter_and_pause(site: Site) -> None:
    site.run(until=35)

    async def story(terminal: Terminal) -> None:
        text = await terminal.shows("F1 noisy-neighbour.*of 2 jobs")
        assert jobs_in(text) == ["ior_stream.1002", "mdt_small.1001"]
        assert "2 of 2 jobs, by JOB" in (text := await terminal.press("s"))
        assert jobs_in(text) == ["ior_stream.1002", "mdt_small.1001"]
        assert jobs_in(await terminal.press("r")) == ["mdt_small.1001", "ior_stream.1002"]
        assert jobs_in(await terminal.press("slash", *"SLOWED", "enter")) == ["ior_stream.1002"]
        assert len(jobs_in(await terminal.press("escape"))) == 2
        assert "by TARGET" in await terminal.press("t", "s")
        assert "paused: p continues" in await terminal.press("p")
        assert "paused" not in await terminal.press("p")
        assert "filter by name" in await terminal.press("question_mark")
        assert "filter by name" not in await terminal.press("escape")

    on_terminal(of(site), story)


def test_every_size_shows_what_fits(site: Site) -> None:
    site.run(until=35)

    async def story(terminal: Terminal) -> None:
        await terminal.shows("of 2 jobs")
        for width, height, there, hidden in ((80, 24, "TARGET .*JOB .*role.*q Quit", "…"),
                                             (60, 24, "TARGET .*ops/s  creates/s .*role.*q Quit", "user|…"),
                                             (60, 12, "JOB .*role.*q Quit", "TARGET "),
                                             (20, 5, "tierd running", "JOB"),
                                             (200, 60, "JOB  +user", "…")):
            await terminal.resize(width, height)
            await terminal.shows(there, hidden, width)

    on_terminal(of(site), story, width=100, height=30)


def test_names_are_no_markup_and_no_escape_sequences(site: Site) -> None:
    site.run(until=35)
    hostile = "[bold red]x[/]\x1b[2J\n\udcff"

    def asking(request: Json) -> Json:
        answer: dict[str, Any] = ask(site.socket, request)
        answer["jobs"][0]["job"] = answer["targets"][0]["target"] = answer["paused"] = hostile
        return answer

    async def story(terminal: Terminal) -> None:
        text = await terminal.shows("of 2 jobs")
        assert text.count(r"[bold red]x[/]\x1b[2J\n\udcff") == 3
        assert r"[bold red]x[/]\x1b[2J" in await terminal.press("slash", *"[bold]")

    on_terminal(asking, story)


def test_a_daemon_may_go_away_and_come_back(site: Site) -> None:
    site.run(until=35)
    gone = Event()

    def asking(request: Json) -> Json:
        if gone.is_set():
            raise ControlError("/run/tierd/tierd.sock: no process listens")
        return ask(site.socket, request)

    async def story(terminal: Terminal) -> None:
        await terminal.shows("of 2 jobs")
        gone.set()
        assert len(jobs_in(await terminal.shows("NO ANSWER: /run/tierd/tierd.sock: no process listens"))) == 2
        gone.clear()
        await terminal.shows(r"^tierd running")

    on_terminal(asking, story)


def test_an_answer_that_cannot_be_read_is_reported() -> None:
    async def story(terminal: Terminal) -> None:
        await terminal.shows("NO ANSWER: ")

    on_terminal(lambda _: {"paused": 1}, story)


class Hurried(SystemClock):
    """A clock whose seconds pass quickly."""

    def monotonic(self) -> float:
        return 100 * super().monotonic()


def test_keys_work_and_the_end_comes_while_the_daemon_does_not_answer(site: Site) -> None:
    site.run(until=35)
    slow, ended = Event(), Event()

    def asking(request: Json) -> Json:
        if slow.is_set():
            ended.wait(LIMIT_SECONDS)
        return ask(site.socket, request)

    async def story(terminal: Terminal) -> None:
        await terminal.shows("of 2 jobs")
        slow.set()
        await terminal.shows(r"tierd has not answered for \d+ s")
        assert "by JOB" in await terminal.press("s")
        await terminal.press("q")

    begun = monotonic()
    on_terminal(asking, story, clock=Hurried())
    assert monotonic() - begun < LIMIT_SECONDS
    ended.set()


def test_a_target_and_a_job_open_and_lead_to_each_other(site: Site) -> None:
    site.run(until=200)

    async def story(terminal: Terminal) -> None:
        await terminal.shows("of 2 jobs")
        await terminal.press("slash", *"OST0002", "enter", "t", "enter")
        text = await terminal.shows("target lustre-OST0002: from 2026.*ops/s .*jobs")
        assert re.search(r"write/s    16\.\d MB, at most 1[67]\.\d MB *\n▁+[▂-█]+█", text)
        assert "\nread/s" not in text
        assert re.search(r"\nF1 2026-\S+ \S+ UTC ior_stream.1002 streamed .*helped", text, re.DOTALL)
        await terminal.press("enter")
        text = await terminal.shows("job ior_stream.1002, user 1002: from .*targets")
        assert re.search(r"write/s    6\d\.", text)
        await terminal.press("escape", "escape")
        await terminal.shows("1 of 6 targets")

    on_terminal(of(site), story)


def test_the_past_is_shown_and_stepped_through(site: Site) -> None:
    site.run(until=310)
    minute = site.cluster.epoch // 60 * 60
    first, second, last = (client.time_text(minute - before) for before in (240, 180, 0))

    async def story(terminal: Terminal) -> None:
        text = await terminal.shows(f"REPLAY {first}, over 60 s.*of 1 jobs.*← Earlier → Later")
        assert re.search("ior_stream.1002 +0 B +66.3 MB", text)
        assert "F1 noisy-neighbour: ior_stream.1002 streamed" not in text
        await terminal.press("right")
        text = await terminal.shows(f"REPLAY {second}")
        assert "F1 noisy-neighbour: ior_stream.1002 streamed" in text
        await terminal.press("j", "enter")
        await terminal.shows(f"job mdt_small.1001, user 1001: from .* to {second[11:]}")
        await terminal.press("escape", "less_than_sign")
        await terminal.shows(f"REPLAY {first}")
        await terminal.press("p")  # it goes on by itself
        await terminal.shows(f"REPLAY {last}")

    on_terminal(of(site), story, source=Past(minute - 250))
    then = datetime.fromtimestamp(minute - 190, UTC).isoformat()
    text = site.shown("top", "--replay", then)
    assert text.startswith(f"REPLAY {second}")
    assert "mdt_small.1001" in text


def test_a_long_list_stays_where_it_is(site: Site) -> None:
    site.run(until=35)
    asked: list[Json] = []

    def asking(request: Json) -> Json:
        asked.append(request)
        answer: dict[str, Any] = ask(site.socket, request)
        answer["jobs"] = [{**answer["jobs"][0], "job": f"many{number}"} for number in range(100)]
        return answer

    async def story(terminal: Terminal) -> None:
        await terminal.shows("many0 ")
        there = jobs_in(await terminal.press("end", *["up"] * 3))
        assert there[-1] == "many99"
        before = len(asked)
        while len(asked) < before + 3:
            assert jobs_in(await terminal.press()) == there
        assert jobs_in(await terminal.press("s"))[0] == "many0"

    on_terminal(asking, story)
