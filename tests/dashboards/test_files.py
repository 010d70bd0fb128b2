"""The dashboards as files, and each query of each panel in a real Prometheus with metrics of a simulated cluster."""

import json
import re
from operator import itemgetter
from typing import Any

import pytest

from dashboards.__main__ import FOLDER, path, text
from dashboards.boards import BOARDS
from dashboards.dashboard import REASON_WORDS, STATE_WORDS, VERDICT_WORDS
from dashboards.panels import NARROW
from exporter.collectors.slim import SLIM_COLLECTORS
from tests.alerts.narrowed import groups_of
from tests.dashboards.conftest import Site
from tests.dashboards.files import (
    ROOT,
    RULES,
    expressions,
    filled,
    links,
    metric_names,
    panels,
    recorded_rules,
    sources,
    unknown_metrics,
    unlinked,
)
from tierd.acts import Verdict
from tierd.daemon.states import FOUND, State
from tierd.refusal import Reason

BOARDS_JSON = [json.loads(text(board)) for board in BOARDS]
ALL_BOARDS = {board["uid"]: board for board in BOARDS_JSON}
SCREEN_PIXELS, MARGIN_PIXELS = 1366, 40
UNITS = {"short", "none", "percentunit", "bytes", "Bps", "ops", "s", "suffix:% of its usual throughput"}

boards = pytest.mark.parametrize("board", BOARDS_JSON, ids=itemgetter("uid"))


def test_files_are_what_the_generator_writes() -> None:
    assert {file.name for file in FOLDER.glob("*.json")} == {path(board).name for board in BOARDS}
    stale = [path(board).name for board in BOARDS if path(board).read_text(encoding="utf-8") != text(board)]
    assert stale == [], "run: make dashboards"


def test_states_have_the_names_that_tierctl_and_the_page_show() -> None:
    shown = {state: words for state, (words, _) in STATE_WORDS.items()}
    assert shown == {state: state for state in (FOUND, *State)}
    assert set(VERDICT_WORDS) == set(Verdict) - {Verdict.TOO_EARLY}
    assert REASON_WORDS.keys() - set(Reason) == {"source", "draining", "advice"}


@boards
def test_a_dashboard_has_what_provisioning_and_people_need(board: dict[str, Any]) -> None:
    assert re.fullmatch(r"[a-z-]{1,40}", board["uid"])
    assert board["title"].startswith("Lustre: ")
    assert board["description"]
    assert all(variable["label"] for variable in board["templating"]["list"])


@boards
def test_every_panel_says_what_it_shows_in_which_unit(board: dict[str, Any]) -> None:
    titles = [panel["title"] for panel in panels(board)]
    assert len(titles) == len(set(titles)), "two panels of a name"
    for panel in panels(board):
        assert panel["title"], panel
        assert len(panel["description"]) > 12, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["targets"], panel["title"]
        if panel["type"] == "stat" and len(panel["fieldConfig"]["defaults"]["thresholds"]["steps"]) > 1:
            answers = "vector(0)" in panel["targets"][0]["expr"] or "noValue" in panel["fieldConfig"]["defaults"]
            assert answers, f"{panel['title']}: No data would be green"


@boards
def test_panels_have_their_place(board: dict[str, Any]) -> None:
    everything = [*board["panels"], *(p for row in board["panels"] for p in row.get("panels", ()))]
    ids = [panel["id"] for panel in everything]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


@boards
def test_rates_fit_the_scrape_interval_and_nothing_samples(board: dict[str, Any]) -> None:
    for title, expr, _ in expressions(board):
        assert "irate" not in expr, title
        windows = re.findall(r"\b(?:rate|increase|max_over_time)\([^\[]*\[([^\]]*)\]", re.sub(r'"[^"]*"', '""', expr))
        of_range = {"In this time range": {"$__range"}, "What jobs cost each other": {"$__range"},
                    "Cases": {"$__range", "$__range:$__rate_interval"}}
        assert set(windows) <= of_range.get(title, {"$__rate_interval"}), title
        for name in re.findall(r"(?<![\w:])([a-z]\w+_(?:total|bucket))\b(?!:)", re.sub(r'"[^"]*"', "", expr)):
            assert re.search(rf"(rate|increase)\({name}", expr) or name.startswith("tierd_"), f"{title}: {name} bare"


@boards
def test_four_hundred_targets_are_not_as_many_lines(board: dict[str, Any]) -> None:
    assert {panel["title"] for panel in panels(board) if panel["type"] == "timeseries" for query in panel["targets"]
            if re.search(r"\{(target|instance)\}", query["legendFormat"])
            and not re.search(r'@ end\(\)|> 0$|_mdt_|="\$instance"|service|changelog|tierd_', query["expr"])} == set()


@boards
def test_links_lead_to_dashboards_and_variables_that_exist(board: dict[str, Any]) -> None:
    known = {b["uid"]: {v["name"] for v in b["templating"]["list"]} for b in BOARDS_JSON}
    links = re.findall(r"/d/([a-z-]+)\?([^\"]*)", json.dumps(board))
    for uid, query in links:
        assert uid in known
        assert set(re.findall(r"var-(\w+)=", query)) <= known[uid], query
    used = set(re.findall(r'[~=]"\$(\w+)"', " ".join(e for _, e, _ in expressions(board))))
    assert used <= known[board["uid"]]
    assert used == known[board["uid"]] - {"datasource"} or board["uid"] in {"lustre-clients", "lustre-jobs"}


@boards
def test_every_metric_is_one_that_the_exporter_tierd_or_a_rule_makes(board: dict[str, Any]) -> None:
    assert [(title, unknown) for title, expr, _ in expressions(board) if (unknown := unknown_metrics(expr))] == []


def by_title(uid: str, title: str) -> dict[str, Any]:
    (panel,) = [panel for panel in panels(ALL_BOARDS[uid]) if panel["title"] == title]
    return panel


@boards
def test_rows_of_merged_tables_have_the_same_labels(board: dict[str, Any]) -> None:
    """Grafana merges rows whose common labels are equal; the metric's name never is."""
    for panel in panels(board):
        if panel["type"] == "table" and len(panel["targets"]) > 1:
            assert all(t["expr"].startswith("max without (__name__) (") for t in panel["targets"]), panel["title"]


@boards
def test_all_columns_of_a_table_are_visible(board: dict[str, Any]) -> None:
    for panel in panels(board):
        if panel["type"] != "table" or any(t["id"] == "groupingToMatrix" for t in panel["transformations"]):
            continue
        shown = next(t for t in panel["transformations"] if t["id"] == "organize")["options"]["renameByName"]
        fixed = {o["matcher"]["options"]: p["value"] for o in panel["fieldConfig"]["overrides"]
                 for p in o["properties"] if p["id"] == "custom.width"}
        assert fixed.keys() <= set(shown.values()), panel["title"]
        least = panel["fieldConfig"]["defaults"]["custom"]["minWidth"]
        needed = sum(fixed.get(heading, least) for heading in shown.values())
        assert needed <= SCREEN_PIXELS * panel["gridPos"]["w"] / 24 - MARGIN_PIXELS, panel["title"]


@boards
def test_a_panel_has_room_for_its_legend_and_for_what_it_says_without_data(board: dict[str, Any]) -> None:
    """Grafana gives text the size of a number: "no exporter on a server" was cut in half."""
    for panel in panels(board):
        assert panel["type"] != "timeseries" or panel["gridPos"]["w"] >= NARROW, panel["title"]
        if panel["type"] == "stat" and panel["gridPos"]["h"] == 3 and "text" in panel["options"]:
            pixels = panel["options"]["text"]["valueSize"] / 2 * len(panel["fieldConfig"]["defaults"]["noValue"])
            assert pixels < 1600 * panel["gridPos"]["w"] / 24, panel["title"]


@boards
def test_a_job_keeps_its_colour(board: dict[str, Any]) -> None:
    for panel in panels(board):
        legends = {target["legendFormat"] for target in panel["targets"]}
        assert "instance=" in panel["targets"][0]["expr"] or not re.search(r"(?<!\{\{fs\}\} )\{\{target", str(legends))
        if panel["type"] == "timeseries" and legends & {"{{jobid}}", "{{victim}}"}:
            assert panel["fieldConfig"]["defaults"]["color"]["mode"] == "palette-classic-by-name", panel["title"]
            dashed = [o["matcher"]["options"] for o in panel["fieldConfig"]["overrides"]
                      if any(p["id"] == "custom.lineStyle" for p in o["properties"])]
            others = legends - {"{{jobid}}", "{{victim}}"}
            assert all(any(re.search(d.strip("/"), legend) for d in dashed) for legend in others), panel["title"]


@boards
def test_mirrored_panels_have_room_below_zero(board: dict[str, Any]) -> None:
    for panel in panels(board):
        for override in panel["fieldConfig"]["overrides"]:
            if any(p == {"id": "custom.transform", "value": "negative-Y"} for p in override["properties"]):
                ending = override["matcher"]["options"].strip("/")
                assert sum(bool(re.search(ending, t["legendFormat"])) for t in panel["targets"]) == 1, panel["title"]
                assert "min" not in panel["fieldConfig"]["defaults"], panel["title"]


@pytest.mark.parametrize("uid", ["lustre-at-a-glance", "lustre-tiering", "lustre-jobs"])
def test_the_story_is_marked_on_the_time_axis(uid: str) -> None:
    marked = {re.findall(r'event="([a-z-]+)"', a["expr"])[0] for a in ALL_BOARDS[uid]["annotations"]["list"]}
    assert {"slowdown", "default-layout", "moves-begun", "verdict", "undo"} <= marked
    events = (ROOT / "tierd" / "daemon" / "metrics.py").read_text(encoding="utf-8")
    assert all(f'"{event}": ' in events for event in marked)


def test_slowed_streams_are_the_present_ones() -> None:
    """Over a time range, the last value before the cure would stay: a query of the present has no series then."""
    (target,) = by_title("lustre-tiering", "Slowed streams")["targets"]
    assert target["instant"]


@pytest.mark.parametrize(("flags", "word"), [
    ({}, "acts"), ({"tierd_dry_run"}, "dry run"), ({"tierd_dry_run", "tierd_learning"}, "learning"),
    ({"tierd_observes_only", "tierd_dry_run"}, "observes only"), ({"tierd_held"}, "outside its window"),
    ({"tierd_paused", "tierd_held"}, "PAUSED"), ({"tierd_paused", "tierd_held", "tierd_dry_run"}, "PAUSED"),
    ({"tierd_paused", "tierd_held", "tierd_breaker_open"}, "PAUSED: circuit breaker"),
    ({"tierd_source_blind", "tierd_learning"}, "BLIND"), ({"tierd_draining", "tierd_dry_run"}, "draining"),
])
def test_the_state_of_tierd_in_words(flags: set[str], word: str) -> None:
    panel = by_title("lustre-at-a-glance", "tierd")
    (expr,) = [target["expr"] for target in panel["targets"]]
    weights = {name: int(weight or 1) for weight, name in re.findall(
        r"(?:(\d+) \* )?(?:max without \(source\) \(|clamp_max\()?(tierd_\w+)\{", expr)}
    code = sum(weights[flag] for flag in flags)
    shown = [m["options"]["result"]["text"] for m in panel["fieldConfig"]["defaults"]["mappings"]
             if m["type"] == "range" and m["options"]["from"] <= code <= m["options"]["to"]]
    assert shown == [word]


def test_a_firing_alert_shows_whom_it_is_about_and_where_to_read_on() -> None:
    panel = by_title("lustre-at-a-glance", "Firing alerts")
    shown = next(t for t in panel["transformations"] if t["id"] == "organize")["options"]["renameByName"]
    assert {"victim", "aggressor", "target", "runbook"} <= shown.keys()
    assert "/runbooks/$1.md" in panel["targets"][0]["expr"]


CLIENT_METRICS = ("lustre_llite_", "lustre_osc_", "lustre_mdc_")
SERVER_METRICS = ("lustre_ost_", "lustre_mdt_", "lustre_osd_", "lustre_osp_", "lustre_job", "lustre_service_",
                  "lustre_changelog_", "lustre_lfsck_", "lustre_quota_", "tierd_", "lustre_target_")


def needs(panel: dict[str, Any], prefixes: tuple[str, ...]) -> bool:
    """Whether no query of a panel has data without metrics of these names."""
    return all(any(name.startswith(prefixes) for name in sources(metric_names(target["expr"])))
               for target in panel["targets"])


@pytest.mark.parametrize("absent", [CLIENT_METRICS, SERVER_METRICS], ids=["servers only", "clients only"])
def test_a_panel_that_can_have_no_data_says_so(absent: tuple[str, ...]) -> None:
    silent = [f"{board['uid']}: {panel['title']}" for board in BOARDS_JSON for panel in panels(board)
              if "noValue" not in panel["fieldConfig"]["defaults"] and needs(panel, absent)]
    assert silent == []


@boards
def test_metrics_of_only_some_sites_are_in_closed_rows(board: dict[str, Any]) -> None:
    """The dashboards of clients need no exporter on a server, all others need none on a client."""
    absent = SERVER_METRICS if board["uid"].startswith("lustre-clients") else CLIENT_METRICS
    assert [panel["title"] for panel in board["panels"] if panel["type"] != "row" and needs(panel, absent)] == []


def test_the_slim_dashboard_needs_only_what_the_slim_profile_shows() -> None:
    board = next(board for board in BOARDS_JSON if board["uid"] == "lustre-clients-slim")
    shown = {re.sub("_total$", "", family.name) for collector in SLIM_COLLECTORS for family in collector.families}
    needed = {name for _, expr, _ in expressions(board) for name in sources(metric_names(expr))}
    assert {re.sub("_total$", "", name) for name in needed} <= shown
    assert len([panel for panel in panels(board) if panel["type"] != "row"]) >= 10


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


@boards
def test_every_panel_shows_something(site: Site, board: dict[str, Any]) -> None:
    empty: dict[str, set[str]] = {}
    for panel in panels(board):
        title = panel["title"]
        for target in panel["targets"]:
            if not site.values(filled(target["expr"]), target["instant"]):
                missing = sources(metric_names(target["expr"])) - site.names
                empty.setdefault(title, set()).update(missing or {"?"})
    unexplained = {title for title, missing in empty.items() if "?" in missing} - MAY_BE_EMPTY.keys()
    assert unexplained == set()


def values_of_variable(site: Site, uid: str, name: str) -> set[str]:
    """The values that a dashboard offers for a variable, with All selected for the others."""
    (variable,) = [v for v in ALL_BOARDS[uid]["templating"]["list"] if v["name"] == name]
    query = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
    assert query, variable
    known = site.prometheus.series(filled(query[1]), site.begin, site.end)
    return {labels[query[2]] for labels in known if query[2] in labels}


@boards
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


@boards
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
            "lustre_quota_slave_up_to_date"} <= site.names


def test_no_case_is_closed_while_tierd_is_away(site: Site) -> None:
    expr = by_title("lustre-tiering", "Cases")["targets"][0]["expr"].replace("$__range", "15m")
    states = [case["metric"]["state"] for case in site.prometheus.instant(filled(expr), site.end + 400)]
    assert "kept" in states


def test_the_recorded_numbers_are_right(site: Site) -> None:
    """Servers and clients count the same bytes."""
    written = "sum(fs_pool_target:lustre_ost_write_bytes:rate2m)"
    sent = "sum(rate(lustre_osc_write_bytes_total[2m]))"
    (server,), (client,) = (site.values(expr, instant=True) for expr in (written, sent))
    assert float(server["value"][1]) == pytest.approx(float(client["value"][1]), rel=0.1)
    (slow,) = site.values("max(tierd_interference_slowdown)", instant=False)
    assert max(float(value) for _, value in slow["values"]) > 1.15
