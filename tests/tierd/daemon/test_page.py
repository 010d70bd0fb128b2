"""tierd's pages without a browser: what they are made of, who may change something, and events."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from httpserver.config import WebConfigFile
from tests.operation.page_answers import ABOUT, ANSWERS, CASE, LIST, NOW, OVERVIEW, overview
from tests.tierd.port import Port, login
from tierd.daemon import charts, page
from tierd.daemon.answers import RefusalAnswer, SourceAnswer, to_json
from tierd.daemon.states import State
from tierd.daemon.web import token_of

LOGIN = login("prometheus", "secret")
QUIET, SLOW = 65e6, 44e6
SAME: dict[str, Any] = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def locked(serving: Callable[..., Port], users_text: str, web_file: Callable[[str], Path]) -> Port:
    """A port with passwords, whose user prometheus may change something."""
    pytest.importorskip("bcrypt")
    return serving(WebConfigFile(web_file(users_text)), ("prometheus",))


# Content


@pytest.mark.parametrize("path", ["/", "/targets", "/jobs", "/history", "/case/F1", "/job/a", "/target/b"])
def test_nothing_in_a_page_is_run_or_styled_but_files_of_tierd(serving: Callable[..., Port], path: str) -> None:
    status, body, headers = serving().request(path)
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|<script>|<script [^s]", body)
    assert re.findall(r"<script[^>]*>", body) == [re.search(r'<script src="/static/tierd.js\?\w+" defer>', body)[0]]  # type: ignore[index]


@given(name=st.text(min_size=1, max_size=30))
@settings(max_examples=40, deadline=None)
def test_no_name_breaks_out_of_its_place(name: str) -> None:
    case = CASE.replaced(aggressor=name, victim=name + "v", directories=(name,), sentence=name,
                   targets=(name,), subject=name)
    about = ABOUT.replaced(name=name, beside=(ABOUT.beside[0].replaced(name=name),), users={name: name}, cases=(case,))
    answers = {**ANSWERS, "about": to_json(about), "rates": ANSWERS["rates"], "overview": overview(
        cases=(case, case), users={name: name}, held=name, faults={"x": name})}
    whole = page.Pages(lambda request: answers[str(request["request"])])
    plain = page.Pages(lambda request: ANSWERS[str(request["request"])])
    for path in ("/", "/job/x", "/target/x"):
        made, usual = (each.page(path, {}, page.Viewer()) or "" for each in (whole, plain))
        made.encode()  # no half of a character is left
        assert set(re.findall(r"<(\w+)", made)) <= set(re.findall(r"<(\w+)", usual)) | {"br"}


def test_learning_is_never_called_quiet(port: Port) -> None:
    good = (SourceAnswer("counters", 2.0, 30.0, False, "2 s old"),)
    port.answers["overview"] = overview(cases=(), all_cases=0, learning=True, windows=3, faults={}, sources=good)
    body = port.request("/")[1]
    assert "Learning: 3 of 4 readings" in body
    assert "Too little is known to rule out slowed streams." in body
    assert "<h1 id=\"lead-h\">Nobody is slowed" not in body
    port.answers["overview"] = overview(cases=(), all_cases=0, faults={}, sources=good)
    assert "device time is not known yet" in port.request("/")[1]
    port.answers["overview"] = overview(cases=(), all_cases=0, faults={}, sources=good, device_time=OVERVIEW.times)
    assert "<h1 id=\"lead-h\">Nobody is slowed" in port.request("/")[1]


@pytest.mark.parametrize(("changed", "word"), [
    ({"paused": "by root"}, "PAUSED"), ({"held": "the maintenance windows"}, "OUTSIDE ITS WINDOW"),
    ({"draining": "by root"}, "DRAINING"), ({}, "DRY RUN"),
    ({"dry_run": False, "mode": "observe"}, "observe")])
def test_the_banner_says_why_acts_are_held(port: Port, changed: dict[str, object], word: str) -> None:
    port.answers["overview"] = overview(**changed)
    body = port.request("/")[1]
    banner = body[body.index('id="banner"'):body.index("</header>")]
    assert f"<b>{word}</b>" in banner
    assert "hidden" not in banner


def test_a_large_site_gets_a_small_page() -> None:
    target, job = OVERVIEW.targets[0], OVERVIEW.jobs[0]
    times = OVERVIEW.times[0].replaced()
    rows = tuple(target.replaced(target=f"lustre-OST{n:04x}") for n in range(400))
    jobs = tuple(job.replaced(job=f"j{n}.1") for n in range(5000))

    def ask(request: Any) -> Any:
        most = request.get("most", 0)
        if request["request"] == "list":
            return to_json(LIST.replaced(targets=rows[:most], jobs=jobs[:most], found=5000))
        if request["request"] != "overview":
            return ANSWERS[request["request"]]
        return to_json(OVERVIEW.replaced(
            cases=(CASE,) * request["cases"], all_cases=300, targets=rows[:most], all_targets=400,
            times=tuple(times.replaced(target=row.target) for row in rows[:most]),
            jobs=jobs[:most], all_jobs=5000))

    pages = page.Pages(ask)
    first = pages.page("/", {}, page.Viewer()) or ""
    assert len(first) < 300_000
    assert '<a href="/targets">all 400</a>' in first
    assert '<a href="/jobs">all 5000</a>' in first
    assert (pages.page("/targets", {}, page.Viewer()) or "").count("<tr>") == 401
    some = pages.page("/jobs", {}, page.Viewer()) or ""
    assert (some.count("<tr>"), '<a href="/jobs?rows=all">all 5000 jobs</a>' in some) == (501, True)
    assert (pages.page("/jobs", {"rows": "all"}, page.Viewer()) or "").count("<tr>") == 5001


def test_a_victim_that_has_recovered_is_not_called_slow(port: Port) -> None:
    port.answers["overview"] = overview(cases=(CASE.replaced(now=73e6),))
    body = port.request("/")[1]
    assert "112%" not in body
    assert body.count("s.1 is back at its usual throughput") >= 2
    port.answers["overview"] = overview(cases=(CASE.replaced(active=False),))
    assert "The finding has ended, and F1 is judging." in port.request("/")[1]
    port.answers["overview"] = overview(faults={"blind": "connection refused"})
    assert "<h1 id=\"lead-h\">The counters cannot be read" in port.request("/")[1]


def test_each_state_has_its_words() -> None:
    assert all(CASE.replaced(state=state).state_text for state in State)
    for state, verdict, reason, words in (
            ("judging", "", "", "the throughput of the victim is measured"), ("undoing", "", "full", "full"),
            ("undone", "did-not-help", "", "did not help"), ("undone", "taken-back", "", "by hand"),
            ("kept", "helped", "", "helped"), ("kept", "", "", "nothing to judge"), ("", "", "", "not acted on"),
            ("closed", "helped", "", "helped; kept"), ("closed", "helped", "full", "undone: full")):
        case = CASE.replaced(state=state, verdict=verdict, undo_reason=reason, dry_run=False)
        assert case.state_text.removeprefix(f"{state}: ") == words


def test_a_chart_has_its_events_in_this_order() -> None:
    kept = CASE.replaced(state="kept", verdict="helped", judged=True, judged_at=NOW - 10)
    chart = charts.case_chart(kept, NOW)
    assert [mark.kind for mark in chart.marks] == ["onset", "found", "act", "verdict"]
    places = [mark.x for mark in chart.marks]
    assert places == sorted(places)
    assert charts.case_chart(CASE.replaced(curve=CASE.curve[:1]), NOW) is None


@given(curve=st.lists(st.tuples(st.floats(0, 1e10), st.floats(0, 1e13)), min_size=2, max_size=400))
@settings(deadline=None)
def test_a_curve_stays_within_its_picture(curve: list[tuple[float, float]]) -> None:
    chart = charts.case_chart(CASE.replaced(curve=tuple(sorted(curve)), onset=None, acted_at=None), NOW)
    if chart is not None:
        numbers = [float(number) for number in re.findall(r"[\d.]+(?:e[+-]?\d+)?", chart.curves[0].path)]
        assert all(0 <= number <= 100 for number in numbers)


def test_a_case_page_says_how_many_acts_it_omits(port: Port) -> None:
    assert "of 95" not in port.request("/case/F1")[1]
    port.answers["explain"] = {**port.answers["explain"], "all_acts": 95}
    body = port.request("/case/F1")[1]
    assert "1 of 95 acts" in body
    assert "/history?case=F1" in body


def test_a_search_is_passed_on(port: Port) -> None:
    port.request("/history?" + urlencode({"path": "/a b", "outcome": "done", "since": "2026-11-20", "act": "migrate"}))
    (asked,) = [asked for asked in port.asked if asked["request"] == "history"]
    assert asked == {"request": "history", "last": 500, "path": "/a b", "outcome": "done", "since": 1_795_132_800.0,
                     "act": "migrate"}


def test_files_of_the_page_are_sent_once(port: Port) -> None:
    status, _, headers = port.request("/static/tierd.css")
    assert (status, headers["Content-Type"]) == (200, "text/css; charset=utf-8")
    assert headers["Cache-Control"] == "max-age=31536000, immutable", "its address changes with its content"
    assert port.request("/static/../page.py")[0] == 404
    assert port.request("/case/F1x")[0] == 404
    port.answers["explain"] = ValueError("the journal has no finding F9")
    assert "the journal has no finding F9" in port.request("/case/F9")[1]


# Who may change something


def test_without_passwords_there_are_no_buttons(serving: Callable[..., Port]) -> None:
    port = serving(None, ("",))
    body = port.request("/")[1]
    assert "<button" not in body
    assert "tierctl pause" in body
    assert port.post({"do": "pause", "token": token_of("", b"")}, **SAME)[0] == 403
    assert not [asked for asked in port.asked if asked["request"] == "pause"]


def test_a_user_who_may_only_look_has_no_buttons(serving: Callable[..., Port], users_text: str,
                                                 web_file: Callable[[str], Path]) -> None:
    pytest.importorskip("bcrypt")
    port = serving(WebConfigFile(web_file(users_text)), ("alice",))
    assert "<button" not in port.request("/", **LOGIN)[1]
    said = 403, "this user may not change anything: [web] change_users\n"
    assert port.post({"do": "pause"}, **LOGIN, **SAME)[:2] == said


def test_a_button_needs_password_origin_and_token(locked: Port) -> None:
    locked.answers["pause"] = {"paused": "oss03", "held": "", "draining": "", "waiting_moves": 0, "waiting_bytes": 0}
    token = locked.token(**LOGIN)
    form = {"do": "pause", "reason": "oss03", "token": token}
    assert locked.post(form, **SAME)[0] == 401
    assert locked.post(form, **LOGIN)[0] == 403
    assert locked.post(form, **LOGIN, Sec_Fetch_Site="cross-site")[0] == 403
    assert locked.post(form, **LOGIN, Origin="http://evil.example")[0] == 403
    for wrong in ("0" * 64, "\udcff", token_of("prometheus", b"")):
        assert locked.post({**form, "token": wrong}, **LOGIN, **SAME)[0] == 403
    assert token_of("alice", b"") != token_of("bob", b"")
    assert locked.request("/do", "POST", '{"do": "pause"}', **LOGIN, **SAME, Content_Type="application/json")[0] == 400
    assert not [asked for asked in locked.asked if asked["request"] == "pause"]
    assert locked.post(form, **LOGIN, **SAME)[0] == 200
    assert locked.post(form, **LOGIN, Origin=f"http://127.0.0.1:{locked.server.port}")[0] == 200
    (first, _) = [asked for asked in locked.asked if asked["request"] == "pause"]
    assert first == {"request": "pause", "reason": "oss03", "by": "prometheus (web)"}


@pytest.mark.parametrize("word", ["apply", "decline"])
def test_a_plan_that_waits_has_buttons(locked: Port, word: str) -> None:
    waiting = CASE.replaced(why_not=(RefusalAnswer("not-approved", "waits for approval", ""),))
    locked.answers["overview"] = overview(cases=(waiting,))
    locked.answers[word] = {"finding": 1, "becomes": "<carried out>", "dry_run": False}
    _, body, _ = locked.request("/", **LOGIN)
    assert f'name="do" value="{word}"><input type="hidden" name="id" value="F1">' in body
    status, body = locked.post({"do": word, "id": "F1", "token": locked.token(**LOGIN)}, **LOGIN, **SAME)
    assert status == 200
    assert "F1: its plan is &lt;carried out&gt;" in body
    assert {"request": word, "id": "F1", "by": "prometheus (web)"} in locked.asked


def test_a_failed_request_is_explained_on_the_page(locked: Port) -> None:
    locked.answers["undo"] = ValueError("the journal has no act 99; tierctl history lists <them>")
    status, body = locked.post({"do": "undo", "id": "99", "token": locked.token(**LOGIN)}, **LOGIN, **SAME)
    assert status == 409
    assert "Not done" in body
    assert "the journal has no act 99; tierctl history lists &lt;them&gt;" in body
    assert locked.post({"do": "rm", "token": locked.token(**LOGIN)}, **LOGIN, **SAME)[0] == 409
    assert {"request": "undo", "id": "99", "by": "prometheus (web)"} in locked.asked
