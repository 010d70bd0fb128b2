"""tierd's pages in a real browser, without a window: content, accessibility, live updates, buttons."""

import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from httpserver.config import WebConfigFile
from tests.operation.browser import CHROMIUM, Browser
from tests.operation.page_answers import ADVICE, CASE, EVIL, KEPT, OVERVIEW, RATES, overview
from tests.tierd.port import Port
from tierd.daemon import page
from tierd.daemon.answers import to_json

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
LOOK_AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"
"""The page asks every five seconds, and at once when it is looked at again."""
PAGES = ("/", "/targets", "/jobs", "/history", "/case/F1", "/job/x?range=1d", "/target/y")


Serving = Callable[..., Port]


@pytest.fixture
def port(serving: Serving) -> Port:
    return serving()


@pytest.fixture
def locked(serving: Serving, users_text: str, web_file: Callable[[str], Path]) -> Port:
    """A port with passwords, whose user prometheus may change something."""
    return serving(WebConfigFile(web_file(users_text)), ("prometheus",))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    chromium.errors.clear()
    chromium.screen(1280, 800)
    yield chromium
    chromium.call("Network.setExtraHTTPHeaders", headers={})
    chromium.open("about:blank")


@pytest.mark.parametrize("scripts", [True, False])
def test_the_page_shows_the_remediation(port: Port, browser: Browser, scripts: bool) -> None:
    browser.screen(1280, 800, scripts=scripts)
    browser.open(port.url)
    root = browser.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
    shown = browser.call("DOM.getOuterHTML", nodeId=root)["outerHTML"]
    for words in ("DRY RUN", "&lt;b&gt;s.1&lt;/b&gt;: it would win too little",
                  "s.1 has 80% of its usual throughput", "Cannot: MDT0000: &lt;gap&gt; &amp; loss",
                  "judging: the throughput of the victim is measured",
                  "To change that: lower benefit.min_gain", "Stalled: no move has ended for 70 s", "alice (1)",
                  "86% of the loss regained (71% to 102%)", "closed: helped; kept",
                  "all 392", "all 5000", "300 refused: has # hard links", "tierctl undo 17",
                  "one stripe for a file of 2 TB", "347 of 439"):
        assert words in shown, words
    assert "alert(1)</script>" not in shown
    assert browser.errors == []


def test_the_overview_has_two_screens_and_a_phone_five(port: Port, browser: Browser) -> None:
    targets, times, job = OVERVIEW.targets[0], OVERVIEW.times[0], OVERVIEW.jobs[0]
    names = [f"lustre-OST{n:04x}" for n in range(page.TOP_ROWS)]
    port.answers["overview"] = overview(
        cases=tuple(case.replaced(finding=n, aggressor="m.1") for n, case in enumerate([CASE] + 20 * [KEPT])),
        all_cases=40,
        targets=tuple(targets.replaced(target=name, condition="") for name in names),
        times=tuple(times.replaced(target=name) for name in names),
        jobs=tuple(job.replaced(job=f"ior_stream.{n}", role="") for n in range(page.TOP_ROWS)), advice=12,
        findings=(ADVICE,) * 12, faults={}, stalled=(), dry_run=False)
    for width, most in ((1280, 1600), (420, 4000)):
        browser.screen(width, 800)
        browser.open(port.url)
        assert browser.run("document.documentElement.scrollHeight") <= most


def test_the_cursor_says_value_and_time(port: Port, browser: Browser) -> None:
    browser.open(port.url + "/job/x")
    first = "document.querySelector('#curve-1').closest('figure').querySelector('.value')"
    assert browser.run(f"{first}.hidden") is True
    at = browser.run("(() => { const r = document.getElementById('curve-1').getBoundingClientRect(); "
                     "return [r.left + r.width / 2, r.top + 30]; })()")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=at[0], y=at[1])
    assert browser.run(f"{first}.textContent") == "2026-11-18 10:36:40 UTC: read 2.0 MB/s, written 55.6 MB/s"
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=5, y=5)
    assert browser.run(f"{first}.hidden") is True
    browser.run("document.getElementById('curve-2').focus()")
    browser.key("ArrowLeft")
    browser.key("ArrowLeft")
    words = "document.querySelector('#curve-2').closest('figure').querySelector('.value').textContent"
    assert browser.run(words) == "2026-11-18 11:05:40 UTC: operations 108/s, metadata operations 20/s"
    port.answers["rates"] = to_json(RATES.replaced(step_seconds=300))
    browser.run(LOOK_AGAIN)
    browser.until("document.getElementById('curves').textContent.includes('5 min')")
    assert browser.run(words).startswith("2026-11-18 11:05:40 UTC")
    assert browser.run("document.activeElement.id") == "curve-2"
    assert browser.errors == []


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(420, True), (1280, False), (2560, True)])
def test_it_fits_the_screen_and_breaks_no_rule_of_accessibility(port: Port, browser: Browser, path: str, width: int,
                                                                dark: bool) -> None:
    browser.screen(width, 900, dark=dark)
    browser.open(port.url + path)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert broken_rules(browser) == []
    assert browser.errors == []


def broken_rules(browser: Browser) -> list[str]:
    """The rules of axe-core that the page breaks, with the elements."""
    found = find_spec("axe_core_python")
    if found is None or found.origin is None:
        pytest.skip("axe-core-python is not installed")
    browser.run((Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
    broken: list[str] = browser.run(
        "axe.run().then(found => found.violations.map(rule => "
        "`${rule.id}: ${rule.nodes.map(node => node.target + ' ' + node.failureSummary).join()}`))")
    return broken


@pytest.mark.parametrize("dark", [False, True])
def test_buttons_and_states_break_no_rule_of_accessibility(locked: Port, browser: Browser, dark: bool) -> None:
    browser.screen(420, 900, dark=dark)
    browser.login("prometheus", "secret")
    url = locked.url
    for changed in ({"paused": "oss03", "cases": (), "all_cases": 0}, {"dry_run": False},
                    {"held": "outside its window", "faults": {}, "learning": True}):
        locked.answers["overview"] = overview(**changed)
        browser.open(url)
        browser.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert broken_rules(browser) == []


def test_a_new_status_appears_without_a_reload_and_leaves_what_is_open(port: Port, browser: Browser) -> None:
    browser.open(port.url)
    browser.until("document.getElementById('live').textContent.includes('live')")
    browser.run("document.getElementById('advice-3').open = true; window.loaded = 'once'")
    port.answers["overview"] = overview(paused="maintenance of oss03")
    browser.run(LOOK_AGAIN)
    browser.until("document.getElementById('banner').textContent.includes('maintenance of oss03')")
    assert browser.run("window.loaded") == "once"
    assert browser.run("document.getElementById('advice-3').open") is True
    assert browser.run("[...document.querySelectorAll('code.line')].some(c => c.textContent == 'tierctl resume')")
    assert browser.errors == []


def test_typed_text_survives_an_update_of_the_page(locked: Port, browser: Browser) -> None:
    url = locked.url
    browser.login("prometheus", "secret")
    browser.open(url)
    browser.run("document.getElementById('reason').focus(); document.getElementById('reason').value = 'oss'")
    locked.answers["overview"] = overview(mode="new-files-only")
    browser.run(LOOK_AGAIN)
    browser.until("document.getElementById('mode').textContent.includes('new-files-only')")
    assert browser.run("document.getElementById('reason').value") == "oss"


def test_a_button_pauses_with_the_keyboard_alone(locked: Port, browser: Browser) -> None:
    locked.answers["pause"] = {"paused": "oss03 & co", "held": "", "draining": "", "waiting_moves": 0,
                               "waiting_bytes": 0}
    url = locked.url
    browser.login("prometheus", "secret")
    browser.open(url)
    browser.run("document.getElementById('reason').focus()")
    browser.call("Input.insertText", text="oss03 & co")
    browser.key("Enter")
    browser.wait_for("Page.loadEventFired")
    assert "paused: oss03 & co" in browser.run("document.body.textContent")
    assert {"request": "pause", "reason": "oss03 & co", "by": "prometheus (web)"} in locked.asked


def test_tab_reaches_the_content_first(port: Port, browser: Browser) -> None:
    browser.open(port.url)
    browser.key("Tab")
    assert browser.run("document.activeElement.textContent") == "Skip to content"


def test_a_search_keeps_its_query(port: Port, browser: Browser) -> None:
    url = port.url
    browser.open(f"{url}/history")
    browser.run(f"document.getElementById('job').value = {json.dumps(EVIL)}; "
                "setTimeout(() => document.querySelector('form[role=search]').requestSubmit(), 0)")
    browser.wait_for("Page.loadEventFired")
    assert browser.run("document.getElementById('job').value") == EVIL
    assert {"request": "history", "last": 500, "job": EVIL} in port.asked
    assert browser.errors == []
