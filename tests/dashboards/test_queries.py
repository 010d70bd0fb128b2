"""Every query of every panel, run in a real Prometheus with the metrics of a simulated cluster."""

from __future__ import annotations

import json
import re
from operator import itemgetter
from typing import Any

import pytest

from dashboards.__main__ import text
from dashboards.boards import BOARDS
from tests.alerts.narrowed import groups_of
from tests.dashboards.conftest import Site
from tests.dashboards.files import (
    RULES,
    expressions,
    filled,
    links,
    metric_names,
    panels,
    recorded_rules,
    sources,
    unlinked,
)

MAY_BE_EMPTY = {
    "Firing alerts": "ALERTS are made by a Prometheus that evaluates alerting rules; alerts/ has tests of its own",
    "Failing collectors by node": "none fails",
    "Clients with broken connections": "all are FULL",
    "Lowest read-ahead hit ratios": "reading may have ended by then",
    "Refusals by reason": "no plan is refused",
    "Read-ahead events": "the simulated read-ahead never fails",
    "Highest RPC slot usage": "measured between requests",
    "Slowed streams": "the state at the end, when the stream is cured",
}
"""Panels without data in these five minutes, and why that is in order."""


ALL_BOARDS = {board["uid"]: board for board in (json.loads(text(board)) for board in BOARDS)}
EACH_BOARD = pytest.mark.parametrize("board", list(ALL_BOARDS.values()), ids=itemgetter("uid"))


@EACH_BOARD
def test_every_panel_shows_something(site: Site, board: dict[str, Any]) -> None:
    empty: dict[str, set[str]] = {}
    for panel in panels(board):
        title = panel["title"]
        for target in panel["targets"]:
            if not site.values(filled(target["expr"]), target["instant"]):
                missing = sources(metric_names(target["expr"])) - site.recorded.names
                empty.setdefault(title, set()).update(missing or {"?"})
    unexplained = {title for title, missing in empty.items() if "?" in missing} - MAY_BE_EMPTY.keys()
    assert unexplained == set()


def values_of_variable(site: Site, uid: str, name: str) -> set[str]:
    """The values that a dashboard offers for a variable, with All selected for the others."""
    (variable,) = [v for v in ALL_BOARDS[uid]["templating"]["list"] if v["name"] == name]
    query = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
    assert query, variable
    known = site.prometheus.series(filled(query[1]), site.recorded.begin, site.recorded.end)
    return {labels[query[2]] for labels in known if query[2] in labels}


@EACH_BOARD
def test_the_values_of_links_are_values_of_their_variables(site: Site, board: dict[str, Any]) -> None:
    """A link that passes a value unknown to the other dashboard leads to a page of No data."""
    dead: list[str] = []
    for panel, link in links(board):
        series = [one for t in panel["targets"] for one in site.values(filled(t["expr"]), instant=False)]
        if not series and panel["title"] in MAY_BE_EMPTY:
            continue
        for variable, label in link.labels.items():
            passed = {name for one in series for name in [one["metric"].get(label, "")]
                      if not any(re.search(ending, name) for ending in unlinked(panel))}
            unknown = passed - values_of_variable(site, link.uid, variable)
            if unknown or not passed:
                dead.append(f"{panel['title']}: {link.title}: {variable}={sorted(unknown)}")
    assert dead == []


@EACH_BOARD
def test_dashboard_variables_find_values(site: Site, board: dict[str, Any]) -> None:
    for variable in board["templating"]["list"]:
        if isinstance(variable["query"], dict):
            assert values_of_variable(site, board["uid"], variable["name"]), variable["name"]


def test_every_recording_rule_is_used() -> None:
    queried = {name for board in ALL_BOARDS.values() for _, expr, _ in expressions(board)
             for name in metric_names(expr)}
    for group in groups_of(RULES.glob("*.yml")):
        queried |= {name for rule in group["rules"] for name in metric_names(rule["expr"])}
    assert recorded_rules().keys() - queried - {"fs_target_job:lustre_job_bytes_per_operation:mean2m"} == set()


def test_metrics_that_the_simulator_lacks_come_from_written_nodes(site: Site) -> None:
    """Else the panels of checks and quotas would be excused from showing anything."""
    assert {"lustre_osd_scrub_state", "lustre_osd_scrub_repaired_objects", "lustre_lfsck_state",
            "lustre_lfsck_failed_items", "lustre_quota_slave_connected", "lustre_quota_slave_enforced",
            "lustre_quota_slave_up_to_date"} <= site.recorded.names


def test_the_recorded_numbers_are_right(site: Site) -> None:
    """Servers and clients count the same bytes."""
    written = "sum(fs_pool_target:lustre_ost_write_bytes:rate2m)"
    sent = "sum(rate(lustre_osc_write_bytes_total[2m]))"
    (server,), (client,) = (site.values(expr, instant=True) for expr in (written, sent))
    assert float(server["value"][1]) == pytest.approx(float(client["value"][1]), rel=0.1)
    (slow,) = site.values("max(tierd_interference_slowdown)", instant=False)
    assert max(float(value) for _, value in slow["values"]) > 1.15
