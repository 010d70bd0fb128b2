"""Each alert fires once, from trouble on a simulated site: simulator, exporter and tierd, rules, promtool."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.alerts.narrowed import order_of, rules_for
from tests.alerts.shown import commands_in, in_page, output, with_output, without_numbers
from tests.alerts.site import Series, Site, promtool_series
from tests.alerts.test_rules import ALERTING, GROUPS
from tests.alerts.troubles import TROUBLES, Trouble
from tests.dashboards.files import ROOT, metric_names, sources
from tests.servers import program

ORDER = order_of(GROUPS)
UNITS = {"s": 1 / 60, "m": 1, "h": 60, "d": 1440}
NOT_OURS = ("up", "scrape_duration_seconds", "process_start_time_seconds")
"""Metrics in rules whose names do not begin as ours do."""
OPTIONAL = {"lustre_job_read_bytes_total", "lustre_llite_read_ahead_hits_total", "lustre_osp_active",
            "tierd_standing_by"}
"""Metrics that exist only after the first event, or in a cluster. No rule may need them to find something."""


def rules_of(alert: str) -> list[dict[str, Any]]:
    return [rule for rule in ALERTING if rule["alert"] == alert]


def minutes(duration: str) -> float:
    """A duration of a rule in minutes.

    >>> minutes("1h"), minutes("30s")
    (60.0, 0.5)
    """
    return sum(float(count) * UNITS[unit] for count, unit in re.findall(r"(\d+)([smhd])", duration))


def patience(alert: str) -> int:
    """Minutes after which the alert must fire: what its rules wait for, and a little more."""
    longest = 0.0
    for rule in rules_of(alert):
        windows = max((minutes(w) for w in re.findall(r"\[(\w+)\]", rule["expr"])), default=0.0)
        seconds = max((float(n) / 60 for n in re.findall(r"[><] *(?:time\(\) - )?(\d+)\b", rule["expr"])
                       if "time()" in rule["expr"]), default=0.0)
        longest = max(longest, minutes(rule.get("for", "0s")) + min(windows, 720.0) + seconds)
    return round(longest) + 8


def names_of(alert: str) -> set[str]:
    """Metrics that the rules of an alert, the rules below them and their texts ask for."""
    texts = [text for rule in rules_of(alert)
             for text in (rule["expr"], *(note for name, note in rule["annotations"].items() if name != "runbook_url"))]
    return set().union(*(sources(metric_names(text)) for text in texts)) | {
        name for name in NOT_OURS if any(re.search(rf"\b{name}\b", text) for text in texts)}


def simulated(trouble: Trouble, folder: Path, commands: Sequence[str]) -> tuple[Series, str]:
    """What Prometheus sees, and what the commands of the runbook print. The first minutes are healthy."""
    site = Site(folder, trouble.jobs, **trouble.site)
    try:
        site.run(trouble.healthy_minutes)
        trouble.begin(site)
        site.run(trouble.minutes, trouble.each)
        printed = "\n".join(output(site, command, trouble.lines) for command in commands)
    finally:
        site.close()
    series = {name.replace('instance="', f'instance="{copy}' if copy else 'instance="'): values
              for copy in range(trouble.instances) for name, values in site.series.items()}
    return series, printed


def unit_test(trouble: Trouble, series: Series) -> dict[str, Any]:
    """A promtool test: quiet while the site is healthy, firing after the patience of the rule."""
    step = trouble.step_minutes
    whole = trouble.healthy_minutes + trouble.minutes + (round(60 * trouble.hours / step) or patience(trouble.alert))
    firing = f'ALERTS{{alertname="{trouble.alert}", alertstate="firing"}}'
    return {
        "name": trouble.alert, "interval": f"{step}m",
        "input_series": list(promtool_series(series, names_of(trouble.alert), whole, trouble.trends)),
        "promql_expr_test": [
            {"expr": firing, "eval_time": f"{step * (trouble.healthy_minutes - 1)}m", "exp_samples": []},
            {"expr": f"count({firing}) > bool 0", "eval_time": f"{step * (whole - 1)}m", "exp_samples": [
                {"labels": "{}", "value": 1}]}],
        "alert_rule_test": [{"alertname": trouble.alert, "eval_time": f"{step * (whole - 1)}m", "exp_alerts": []}],
    }


def test_there_is_a_trouble_for_each_alert() -> None:
    assert {trouble.alert for trouble in TROUBLES} == {rule["alert"] for rule in ALERTING}


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.alert)
def test_trouble_makes_its_alert_fire(trouble: Trouble, tmp_path: Path) -> None:
    runbook = ROOT / "docs" / "runbooks" / f"{trouble.alert}.md"
    page = runbook.read_text(encoding="utf-8")
    commands = commands_in(page)
    assert commands, "the runbook shows no command"
    with tempfile.TemporaryDirectory(prefix="trouble-") as folder:
        series, printed = simulated(trouble, Path(folder), commands)
    if os.environ.get("RUNBOOKS") == "rewrite":
        page = with_output(page, printed)
        runbook.write_text(page, encoding="utf-8")
    assert without_numbers(in_page(page)) == without_numbers(printed), "make runbooks"
    exposed = {name.partition("{")[0] for name in series}
    assert names_of(trouble.alert) - exposed <= OPTIONAL, "a rule asks for what nobody exposes"
    rules = rules_for({trouble.alert}, GROUPS)
    wanted = {group["name"] for group in rules["groups"]}
    tests = {"rule_files": [str(tmp_path / "rules.yml")], "evaluation_interval": f"{trouble.step_minutes}m",
             "group_eval_order": [name for name in ORDER if name in wanted], "tests": [unit_test(trouble, series)]}
    # JSON is YAML too, and is written faster
    (tmp_path / "rules.yml").write_text(json.dumps(rules), encoding="utf-8")
    file = tmp_path / "trouble.yml"
    file.write_text(json.dumps(tests), encoding="utf-8")
    command = [program("promtool"), "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    # the alert itself is never expected, so that promtool prints it with the texts people get
    assert "exp:[]" in re.sub(r"\s", "", said), said[-3000:]
    assert "expr:" not in said, said[-3000:]
    texts = re.findall(r'description="(.*?)", runbook_url=', said, re.DOTALL)
    assert texts, said[-3000:]
    assert not any("<no value>" in text or "%!" in text for text in texts), texts
