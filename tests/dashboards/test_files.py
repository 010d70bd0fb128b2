"""The dashboards as files: what Grafana's own linter asks for, and what it does not look at."""

from __future__ import annotations

import json
import re
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from dashboards.__main__ import FOLDER, main, path, text
from dashboards.boards import BOARDS
from tests.dashboards.files import ROOT, expressions, metric_names, panels, recorded_rules
from tests.rules import every

BOARDS_JSON = [json.loads(text(board)) for board in BOARDS]
UNITS = {"short", "none", "percentunit", "bytes", "Bps", "ops", "s"}

boards = every("board", BOARDS_JSON, ids=itemgetter("uid"))


def test_files_are_what_the_generator_writes() -> None:
    assert main(["--check"]) == 0, "run: make dashboards"
    assert {file.name for file in FOLDER.glob("*.json")} == {path(board).name for board in BOARDS}


def test_a_difference_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                              ) -> None:
    monkeypatch.setattr("dashboards.__main__.FOLDER", tmp_path)
    monkeypatch.setattr("dashboards.__main__.path", lambda board: path(board, tmp_path))
    assert main(["--check"]) == 1
    assert main([]) == 0
    capsys.readouterr()
    assert main(["--check"]) == 0
    assert capsys.readouterr().out == ""


@boards
def test_a_dashboard_has_what_provisioning_and_people_need(board: dict[str, Any]) -> None:
    assert re.fullmatch(r"[a-z-]{1,40}", board["uid"])
    assert board["title"].startswith("Lustre: ")
    assert board["description"]
    assert board["editable"] is False
    assert board["graphTooltip"] == 1
    assert board["schemaVersion"] == 39
    assert board["tags"] == ["lustre"]
    assert "__inputs" not in board
    assert "${DS_" not in json.dumps(board)
    (menu,) = board["links"]
    assert (menu["type"], menu["tags"], menu["keepTime"], menu["includeVars"]) == ("dashboards", ["lustre"], True, True)
    first, *others = board["templating"]["list"]
    assert (first["name"], first["type"], first["label"]) == ("datasource", "datasource", "Data source")
    assert all(v["refresh"] == 2 and v["label"] and v["datasource"]["uid"] == "${datasource}" for v in others)


def test_uids_are_unique() -> None:
    assert len({board["uid"] for board in BOARDS_JSON}) == len(BOARDS_JSON)


@boards
def test_every_panel_says_what_it_shows_in_which_unit(board: dict[str, Any]) -> None:
    titles = [panel["title"] for panel in panels(board)]
    assert len(titles) == len(set(titles)), "two panels of a name"
    for panel in panels(board):
        assert panel["title"], panel
        assert len(panel["description"]) > 12, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
        if panel["type"] == "stat" and len(panel["fieldConfig"]["defaults"]["thresholds"]["steps"]) > 1:
            answers = "vector(0)" in panel["targets"][0]["expr"] or "noValue" in panel["fieldConfig"]["defaults"]
            assert answers or "max(scrape" in panel["targets"][0]["expr"], f"{panel['title']}: No data would be green"


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
        windows = re.findall(r"\b(?:rate|increase)\([^\[]*\[([^\]]*)\]", expr)
        assert set(windows) <= {"$__rate_interval"}, title
        for name in re.findall(r"(?<![\w:])([a-z]\w+_(?:total|bucket))\b(?!:)", re.sub(r'"[^"]*"', "", expr)):
            assert re.search(rf"(rate|increase)\({name}", expr) or name.startswith("tierd_"), f"{title}: {name} bare"


@boards
def test_links_lead_to_dashboards_and_variables_that_exist(board: dict[str, Any]) -> None:
    known = {b["uid"]: {v["name"] for v in b["templating"]["list"]} for b in BOARDS_JSON}
    links = re.findall(r"/d/([a-z-]+)\?([^\"]*)", json.dumps(board))
    for uid, query in links:
        assert uid in known
        assert set(re.findall(r"var-(\w+)=", query)) <= known[uid], query
    used = set(re.findall(r"\$(fs|pool|target|jobid|job|instance)\b", " ".join(e for _, e, _ in expressions(board))))
    assert used <= known[board["uid"]]
    assert used == known[board["uid"]] - {"datasource"} or board["uid"] in {"lustre-clients", "lustre-jobs"}


@boards
def test_every_metric_is_one_that_the_exporter_tierd_or_a_rule_makes(board: dict[str, Any]) -> None:
    documented = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rules = recorded_rules()
    own = (ROOT / "tierd" / "daemon" / "metrics.py").read_text(encoding="utf-8")
    for title, expr, _ in expressions(board):
        for name in metric_names(expr):
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            bare = re.sub(r"_(total|info)$", "", name)
            assert name in rules or f"`{base}`" in documented or f"`{name}`" in documented or f'"{bare}"' in own, (
                f"{title}: {name}")
