"""Rules: promtool's own tests, a runbook for each alert, an alert for each runbook, metrics that exist.

Each alert fires once, from trouble on a simulated site: simulator, exporter and tierd, rules, promtool. Its runbook
shows the output of commands there. ``RUNBOOKS=rewrite`` writes it.
"""

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.alerts.narrowed import groups_of, order_of, read, rules_for
from tests.alerts.site import EXPORTER, MINUTE, TIERD, Series, Site, promtool_series
from tests.alerts.troubles import TROUBLES, Trouble
from tests.dashboards.files import ROOT, metric_names, sources, unknown_metrics
from tests.servers import output_of, program

ALERTS = ROOT / "alerts"
RUNBOOKS = ROOT / "docs" / "runbooks"
RULES = sorted((ALERTS / "rules").glob("*.yml"))
GROUPS = groups_of(RULES)


def rules(kind: str) -> list[dict[str, Any]]:
    return [rule for group in GROUPS for rule in group["rules"] if kind in rule]


ALERTING = rules("alert")


def test_promtool_likes_the_rules() -> None:
    assert "SUCCESS" in output_of("promtool", "check", "rules", *RULES)


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
    assert output_of("promtool", "test", "rules", *each).count("SUCCESS") == len(each)


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


def test_rules_tell_two_file_systems_of_one_name_apart() -> None:
    texts = [file.read_text(encoding="utf-8") for file in (*RULES, ALERTS / "rack" / "rules.yml")]
    assert {labels for text in texts for labels in re.findall(r"\b(?:by|on) ?\(([^)]*)\)", text)
            if not labels.startswith("cluster, ")} == {"version", "job", "target"}  # that of a text is of one cluster


PLACES = ("proc/fs/lustre", "sys/fs/lustre", "sys/kernel/debug/lustre", "sys/kernel/debug/lnet")
MAX_LINES = 8
HEADING = "On a simulated site:\n\n"


def output(site: Site, command: str, only: str = "") -> str:
    """The output of a command, as a shell on the node prints it; of long output the lines that match ``only``."""
    shown, _, filtered = command.partition(" | grep -E ")
    program, *words = shlex.split(shown)
    if program == "curl":
        instance = EXPORTER if words[-1].endswith("9169/metrics") else TIERD
        lines = list(metric_lines(site, instance))
    elif program == "promtool":
        lines = list(query_lines(site, words))
    elif program == "cat":
        lines = (site.root / words[0].lstrip("/")).read_text().splitlines()
    else:
        assert (program, words[0]) == ("lctl", "get_param"), command
        lines = [line for pattern in words[1:] for line in parameter(site.root, pattern, only)]
        only = ""
    wanted = shlex.split(filtered)[0] if filtered else only
    found = [line.rstrip() for line in lines if re.search(wanted, line)]
    assert found, command
    more = [f"... ({len(found) - MAX_LINES} more lines)"] if len(found) > MAX_LINES else []
    return "\n".join([f"# {command}", *found[:MAX_LINES], *more])


def parameter(root: Path, pattern: str, only: str) -> Iterator[str]:
    """``lctl get_param``: one line for a value of one line, else the name and the lines below it."""
    for place in PLACES:
        for file in sorted((root / place).glob(pattern.replace(".", "/"))):
            name = str(file.relative_to(root / place)).replace("/", ".")
            lines = file.read_text().rstrip("\n").split("\n")
            if len(lines) == 1:
                yield from [f"{name}={lines[0]}"] if re.search(only, f"{name}={lines[0]}") else []
            elif kept := [line for line in lines if re.search(only, line)]:
                yield f"{name}="
                yield from kept


def metric_lines(site: Site, instance: tuple[str, str]) -> Iterator[str]:
    """The last page of an exporter, without what Prometheus adds."""
    own = f'job="{instance[0]}",instance="{instance[1]}"'
    for series, values in sorted(site.series.items()):
        if own in series and values[-1] is not None and not series.startswith(("up{", "scrape_")):
            bare = series.replace(own, "").replace(",}", "}").replace("{}", "")
            value = values[-1] + (site.begin if "timestamp_seconds{" in bare else 0.0)
            yield f"{bare} {value:.{10 if value > 1e9 else 4}g}"


def query_lines(site: Site, words: list[str]) -> Iterator[str]:
    """``promtool query instant URL QUERY`` at the last scrape; the query selects series and may compare them."""
    assert words[:2] == ["query", "instant"], words
    form = r"(?P<name>\w+)\{(?P<label>\w+)=~\"(?P<wanted>[^\"]*)\"\}(?: (?P<comparison>==|>) (?P<limit>\d+))?"
    asked = re.fullmatch(form, words[3])
    assert asked is not None, words[3]
    for series, values in sorted(site.series.items()):
        name, _, rest = series.partition("{")
        labels = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        value = values[-1]
        if value is None or name != asked["name"] or not re.fullmatch(asked["wanted"], labels.get(asked["label"], "")):
            continue
        limit = float(asked["limit"] or 0)
        if {"==": value == limit, ">": value > limit, None: True}[asked["comparison"]]:
            shown = ", ".join(f'{label}="{labels[label]}"' for label in sorted(labels))
            yield f"{name}{{{shown}}} => {value:.4g} @[{site.begin + MINUTE * site.minutes:.0f}]"


def without_numbers(text: str) -> str:
    """Output of which the numbers do not matter: the simulator may be tuned.

    >>> without_numbers('x{le="0.032"} 1.5e+09') == without_numbers('x{le="0.064"} 7')
    True
    """
    return re.sub(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", "0", text)


def in_page(page: str) -> str:
    """The output that a runbook shows; empty without any."""
    found = re.search(re.escape(HEADING) + r"((?:    .*\n|\n(?=    ))+)", page)
    return re.sub(r"^    ", "", found[1], flags=re.MULTILINE).rstrip("\n") if found else ""


def commands_in(page: str) -> list[str]:
    """The commands whose output a runbook shows."""
    return re.findall(r"^# (.*)$", in_page(page), re.MULTILINE)


def with_output(page: str, text: str) -> str:
    """The runbook with this output at the end of its diagnosis.

    >>> page = "# A\\n\\n## Diagnosis\\n\\n    cat x\\n\\n## Mitigation\\n\\nMend it.\\n"
    >>> in_page(with_output(page, "# cat x\\n1"))
    '# cat x\\n1'
    >>> with_output(with_output(page, "# cat x\\n1"), "# cat x\\n2") == with_output(page, "# cat x\\n2")
    True
    """
    before, heading, after = page.partition("\n## Mitigation")
    before = before.partition("\n" + HEADING)[0]
    indented = "".join(f"    {line}\n" if line else "\n" for line in text.split("\n"))
    return f"{before.rstrip(chr(10))}\n\n{HEADING}{indented}{heading}{after}"


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
