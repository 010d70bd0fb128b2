"""Rules: promtool's own tests, a runbook for each alert, an alert for each runbook, metrics that exist."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.alerts.narrowed import groups_of, order_of, read, rules_for
from tests.dashboards.files import ROOT, unknown_metrics
from tests.servers import program

ALERTS = ROOT / "alerts"
RUNBOOKS = ROOT / "docs" / "runbooks"
RULES = sorted((ALERTS / "rules").glob("*.yml"))


GROUPS = groups_of(RULES)


def rules(kind: str) -> list[dict[str, Any]]:
    return [rule for group in GROUPS for rule in group["rules"] if kind in rule]


ALERTING = rules("alert")


def promtool(*arguments: str) -> str:
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, check=False,
                          cwd=ALERTS / "tests")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_likes_the_rules() -> None:
    assert "SUCCESS" in promtool("check", "rules", *map(str, RULES))


def narrowed(file: Path, folder: Path) -> Iterator[Path]:
    """A file of tests as one for each test, with the rules that its checks depend on, of the rule files it names."""
    content = read(file)
    rule_files = [file.parent / name for name in content.pop("rule_files")]
    groups = groups_of(rule_files)
    assert content["group_eval_order"] == order_of(groups)
    for number, test in enumerate(content["tests"]):
        checked = [re.search(r'alertname="(\w+)"', check["expr"]) for check in test.get("promql_expr_test", ())]
        alerts = {found[1] for found in checked if found} | {
            check["alertname"] for check in test.get("alert_rule_test", ())}
        rules = rules_for(alerts, groups) if all(checked) else {"groups": groups}
        (folder / f"rules{number}.yml").write_text(json.dumps(rules), encoding="utf-8")
        wanted = {group["name"] for group in rules["groups"]}
        one = folder / f"test{number}.yml"
        one.write_text(json.dumps({
            **content, "rule_files": [f"rules{number}.yml"], "tests": [test], "evaluation_interval": test["interval"],
            "group_eval_order": [name for name in content["group_eval_order"] if name in wanted]}), encoding="utf-8")
        yield one


@pytest.mark.parametrize("file", sorted((ALERTS / "tests").glob("*.yml")), ids=lambda file: file.stem)
def test_alerts_fire_exactly_when_they_should(file: Path, tmp_path: Path) -> None:
    each = list(narrowed(file, tmp_path))
    assert promtool("test", "rules", *map(str, each)).count("SUCCESS") == len(each)


def test_every_alert_is_seen_firing_quiet_and_resolved() -> None:
    tested: dict[str, set[str]] = {}
    for file in (ALERTS / "tests").glob("*.yml"):
        for test in read(file)["tests"]:
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
        assert rule["annotations"]["runbook_url"] == (
            "{{ with $externalLabels.tierd_url }}{{ . }}{{ else }}https://lustre-tierd.example{{ end }}"
            f"/runbooks/{name}")
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
    assert [(rule.get("alert", rule.get("record")), unknown) for rule in (*ALERTING, *rules("record"))
            if (unknown := unknown_metrics(rule["expr"]))] == []
