"""Rules: promtool's own tests, a runbook for each alert, an alert for each runbook, metrics that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards.files import ROOT, metric_names, recorded_rules
from tests.servers import program

ALERTS = ROOT / "alerts"
RUNBOOKS = ROOT / "docs" / "runbooks"
RULES = sorted((ALERTS / "rules").glob("*.yml"))


def rules(kind: str) -> list[dict[str, Any]]:
    return [rule for file in RULES for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
            for rule in group["rules"] if kind in rule]


ALERTING = rules("alert")


def promtool(*arguments: str) -> str:
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, check=False,
                          cwd=ALERTS / "tests")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_likes_the_rules() -> None:
    assert "SUCCESS" in promtool("check", "rules", *map(str, RULES))


@pytest.mark.parametrize("file", sorted((ALERTS / "tests").glob("*.yml")), ids=lambda file: file.stem)
def test_alerts_fire_when_they_should_and_not_else(file: Path) -> None:
    assert promtool("test", "rules", file.name).count("SUCCESS") == 1


def test_every_alert_is_seen_firing_quiet_and_resolved() -> None:
    tested: dict[str, set[str]] = {}
    for file in (ALERTS / "tests").glob("*.yml"):
        for test in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]:
            checks = test.get("promql_expr_test", ())
            fires = [bool(check["exp_samples"]) for check in checks]
            tested.setdefault(test["name"], set()).update(
                word for word, there in (("before", fires[:1] == [False]), ("fires", any(fires)),
                                         ("resolved", fires[-1:] == [False])) if there)
    assert {rule["alert"] for rule in ALERTING} <= tested.keys()
    assert {name for name, seen in tested.items() if seen != {"before", "fires", "resolved"}} == set()


def test_an_alert_says_how_bad_what_and_where_to_read_on() -> None:
    for rule in ALERTING:
        name = rule["alert"]
        assert re.fullmatch(r"(Lustre|Tierd)[A-Za-z]+", name)
        assert rule["labels"].keys() == {"severity"}
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"].endswith("."), name
        assert "{{" not in rule["annotations"]["summary"], name
        assert rule["annotations"]["runbook_url"].endswith(f"/runbooks/{name}.md")
        assert "topk" not in rule["expr"], name


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    names = {rule["alert"] for rule in ALERTING}
    pages = {page.stem: page.read_text(encoding="utf-8") for page in RUNBOOKS.glob("*.md") if page.stem != "README"}
    assert pages.keys() == names
    for name, page in pages.items():
        parts = re.split(r"^## (.*)$", page, flags=re.MULTILINE)
        assert parts[0].startswith(f"# {name}\n")
        assert parts[1::2] == ["Meaning", "Impact", "Diagnosis", "Mitigation"], name
        assert all(text.strip() for text in parts[2::2]), name
        assert re.search(r"^    [^#\s]", parts[6], re.MULTILINE), f"{name}: no command"
    index = (RUNBOOKS / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\((\w+)\.md\)", index)) == names


def test_rules_ask_for_metrics_that_exist() -> None:
    documented = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    own = (ROOT / "tierd" / "daemon" / "metrics.py").read_text(encoding="utf-8")
    own += (ROOT / "httpserver" / "metrics.py").read_text(encoding="utf-8").replace('prefix + "', '"tierd_')
    own += (ROOT / "tierd" / "gather" / "app.py").read_text(encoding="utf-8").replace('PREFIX + "', '"lustre_gather_')
    recorded = recorded_rules()
    for rule in (*ALERTING, *rules("record")):
        for name in metric_names(rule["expr"]):
            base, bare = re.sub(r"_(bucket|sum|count)$", "", name), re.sub(r"_(total|info)$", "", name)
            known = name in recorded or f"`{base}`" in documented or f"`{name}`" in documented or f'"{bare}"' in own
            assert known, f"{rule.get('alert', rule.get('record'))}: {name}"
