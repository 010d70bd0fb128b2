"""The dashboards in a real Grafana, where one is found (GRAFANA_HOME, or on the PATH), by a headless Chromium.

Every row is opened. A panel error, an error in the console, a "No data" that nothing explains and a link that leads
nowhere fail the test. Pictures are kept in the folder that GRAFANA_PICTURES names.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from dashboards.__main__ import path, text
from dashboards.boards import BOARDS
from dashboards.dashboard import Dashboard
from stack.services import ROOT, SCRAPE_SECONDS, Ports, free_ports, grafana_command, grafana_environment
from tests.dashboards.conftest import STEP_SECONDS, Site
from tests.dashboards.files import panels
from tests.dashboards.test_files import MAY_BE_EMPTY
from tests.operation.browser import CHROMIUM, Browser
from tests.servers import running
from tests.tierd.sense.loopback_server import answers, liar

GRAFANA = grafana_command(os.environ.get("GRAFANA_HOME", ""))
WIDTH, HEIGHT = 1600, 7000
"""So high that Grafana, which renders what is in sight, renders all panels."""

SEEN = """JSON.stringify([...document.querySelectorAll('[data-testid^="data-testid Panel header"]')].map(
    panel => ({title: panel.dataset.testid.replace('data-testid Panel header ', ''), text: panel.innerText,
                 failed: !!panel.querySelector('[data-testid="data-testid Panel status error"]')})))"""
LOADED = """(panels => panels.length >= %d && !document.querySelector('[aria-label="Panel loading bar"]')
    && panels.every(panel => panel.querySelector('canvas') || panel.innerText.trim().length
                    > panel.dataset.testid.replace('data-testid Panel header ', '').length))
    ([...document.querySelectorAll('[data-testid^="data-testid Panel header"]')])"""
"""Each panel shows more than its title: a panel whose query has not begun has no loading bar."""
LOADED_SECONDS = 120
NO_EXTENTS_STATS = {"Application read size", "Application write size"}
"""The recorded site has none, and Grafana's heatmaps show no text of our own."""
LINKS = """JSON.stringify([...new Set(
    [...document.querySelectorAll('.react-grid-item a[href*="/d/"]')].map(a => a.href))])"""


@dataclass(frozen=True, slots=True)
class SeenPanel:
    """A panel as the browser shows it."""

    title: str
    text: str
    failed: bool

    @property
    def empty(self) -> bool:
        return "No data" in self.text


SETTLED = """(() => {
  const style = document.createElement("style");
  style.textContent = "* {transition: none !important; animation: none !important}";
  document.head.append(style);
  const items = [...document.querySelectorAll(".react-grid-item")];
  return Math.ceil(Math.max(...items.map(item => item.getBoundingClientRect().bottom))) + 20;
})()"""
"""Ends the motion of panels to their places. Returns the height of the dashboard."""


def opened(browser: Browser, url: str, count: int) -> list[SeenPanel]:
    """Open a dashboard and wait until so many panels are loaded."""
    browser.errors.clear()
    browser.open(url)
    browser.until(LOADED % count, LOADED_SECONDS)
    return [SeenPanel(**one) for one in json.loads(browser.run(SEEN))]


def faults(seen: list[SeenPanel], expected: set[str], errors: list[str]) -> list[str]:
    """What is wrong with a dashboard as the browser shows it."""
    found = [f"{title}: not shown" for title in sorted(expected - {panel.title for panel in seen})]
    found += [f"{panel.title}: panel error" for panel in seen if panel.failed]
    found += [f"{panel.title}: No data" for panel in seen if panel.empty
              and panel.title not in MAY_BE_EMPTY.keys() | NO_EXTENTS_STATS]
    return found + [f"console: {error}" for error in errors]


def one_of_each_kind(links: list[str]) -> list[str]:
    """One link for each dashboard and set of variables. ``test_files`` checks the values of all links."""
    kinds = {(parts.path, *sorted(parse_qs(parts.query))): link for link in links if (parts := urlsplit(link))}
    return list(kinds.values())


def all_rows_open(board: Dashboard) -> Dashboard:
    return replace(board, rows=tuple(replace(row, closed=False) for row in board.rows))


@pytest.fixture(scope="module")
def grafana(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Grafana with the recorded site as data source and all rows open."""
    assert GRAFANA is not None
    folder = tmp_path_factory.mktemp("grafana")
    boards = folder / "boards"
    boards.mkdir()
    for board in BOARDS:
        (boards / path(board).name).write_text(text(all_rows_open(board)), encoding="utf-8")
    ports = Ports(1, 2, int(site.prometheus.url.rpartition(":")[2]), 4, *free_ports(0))
    environment = grafana_environment(folder, ports, folder / "data")
    provisioning = folder / "provisioning" / "dashboards" / "lustre.yml"
    provisioning.write_text(provisioning.read_text().replace(f"{ROOT}/dashboards/json", str(boards)))
    source = folder / "provisioning" / "datasources" / "prometheus.yml"
    source.write_text(source.read_text().replace(f"{SCRAPE_SECONDS}s", f"{STEP_SECONDS}s"))
    home = environment.pop("GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH", "")
    assert home
    url = f"http://127.0.0.1:{ports.grafana}"
    command = ["env", *(f"{name}={value}" for name, value in environment.items()), *GRAFANA]
    with running(command, f"{url}/api/health", folder / "grafana.log"):
        yield url


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium")
    with Browser(tmp_path / "profile") as made:
        made.screen(WIDTH, HEIGHT, dark=True)
        yield made


@pytest.mark.skipif(GRAFANA is None or CHROMIUM is None, reason="no Grafana (GRAFANA_HOME), or no Chromium")
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_dashboard_in_a_real_grafana(board: Dashboard, grafana: str, browser: Browser, site: Site) -> None:
    made = json.loads(text(all_rows_open(board)))
    titles = {panel["title"] for panel in panels(made)}
    def shown(until: float) -> list[SeenPanel]:
        time = f"from={site.begin * 1000:.0f}&to={until * 1000:.0f}&kiosk&theme=light"
        return opened(browser, f"{grafana}/d/{made['uid']}?{time}", len(titles))

    seen = shown(site.end)
    if folder := os.environ.get("GRAFANA_PICTURES", ""):
        browser.picture(Path(folder) / f"{made['uid']}.png", int(browser.run(SETTLED)))
    assert faults(seen, titles, browser.errors) == []
    for link in one_of_each_kind(json.loads(browser.run(LINKS))):
        behind = opened(browser, link, 1)
        assert [panel.title for panel in behind if panel.failed] == [], link
        assert any(not panel.empty for panel in behind), f"{link}: nothing but No data"
        assert browser.errors == [], link


PAGE = """<script>console.error("a plug-in did not load")</script>
<div data-testid="data-testid Panel header tierd"><h2>tierd</h2>acts</div>
<section data-testid="data-testid Panel header Jobs"><h2>Jobs</h2>No data</section>
<section data-testid="data-testid Panel header Cases"><h2>Cases</h2>x
<i data-testid="data-testid Panel status error"></i></section>
<section data-testid="data-testid Panel header Refusals by reason"><h2>Refusals by reason</h2>No data</section>
<section data-testid="data-testid Panel header Late"><h2>Late</h2><p></p></section>
<script>setTimeout(() => document.querySelector("p").textContent = "No data", 300)</script>"""


def test_errors_of_a_page_are_noticed(browser: Browser) -> None:
    """Without Grafana: a page with the marks that Grafana 10.1 gives its panels."""
    with liar([answers(PAGE, "text/html"), answers("", "text/html")]) as server:
        seen = opened(browser, f"{server.url}/d/x", 5)
    found = faults(seen, {"tierd", "Pool usage"}, browser.errors)
    assert found[:4] == ["Pool usage: not shown", "Cases: panel error", "Jobs: No data", "Late: No data"]
    assert len(found) == 5
    assert "a plug-in did not load" in found[4]
