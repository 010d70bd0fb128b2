"""The dashboards as JSON, taken apart."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
RULES = ROOT / "alerts" / "rules"
Json = dict[str, Any]


def panels(board: Json) -> Iterator[Json]:
    """All panels but the headings of rows."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def expressions(board: Json) -> Iterator[tuple[str, str, bool]]:
    """Panel title, query, and whether it asks for one moment only."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["instant"]


@cache
def recorded_rules() -> dict[str, str]:
    """Name and expression of every recording rule. Read once: YAML takes a third of a second."""
    return {rule["record"]: rule["expr"] for file in sorted(RULES.glob("*.yml"))
            for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
            for rule in group["rules"] if "record" in rule}


def metric_names(expr: str) -> set[str]:
    """Names of this project's metrics and recording rules in an expression.

    >>> sorted(metric_names('sum by (fs) (fs:lustre_x:rate2m{a="lustre_no"}) / lustre_y_total'))
    ['fs:lustre_x:rate2m', 'lustre_y_total']
    """
    bare = re.sub(r'"[^"]*"', '""', expr)
    names = set(re.findall(r"[a-z_]*:?(?:lustre|tierd)_[a-z_0-9]+(?::[a-z_0-9]+)?", bare))
    for pattern in re.findall(r'__name__=~"([^"]*)"', expr):
        names |= set(expanded(pattern))
    return {name for name in names if name != "lustre_"}


@cache
def documented_metrics() -> str:
    """The texts that name every metric of the exporter, of tierd and of its web server."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in (
        "docs/metrics.md", "docs/powerflex.md", "tierd/daemon/metrics.py", "tierd/bill/running.py")]
    web = (ROOT / "httpserver/metrics.py").read_text(encoding="utf-8").replace('prefix + "', '"tierd_')
    return "\n".join([*texts, web])


def unknown_metrics(expr: str) -> list[str]:
    """Names in an expression that neither the exporter nor tierd nor a rule makes."""
    known = documented_metrics()
    return [name for name in metric_names(expr) - recorded_rules().keys() if not any(
        quoted in known for quoted in (f"`{re.sub('_(bucket|sum|count)$', '', name)}`", f"`{name}`",
                                       f'"{re.sub("_(total|info)$", "", name)}"'))]


def expanded(pattern: str) -> Iterator[str]:
    """The names a pattern like ``a_(b|c)_d`` stands for."""
    choice = re.search(r"\(([^()]*)\)", pattern)
    if choice is None:
        yield pattern
        return
    for part in choice[1].split("|"):
        yield from expanded(pattern[:choice.start()] + part + pattern[choice.end():])


def filled(expr: str) -> str:
    """A query with All selected, as Grafana sends it."""
    values = {"$__rate_interval": "1m", "$__range": "5m", "$__interval": "15s", "$instance": "oss01:9169"}
    for name, value in values.items():
        expr = expr.replace(name, value) if name != "$instance" else re.sub(r"\$instance\b", value, expr)
    return re.sub(r"\$(cluster|fs|pool|target|jobid|job)\b", ".*", expr)


def sources(names: set[str]) -> set[str]:
    """Metrics behind recorded names."""
    rules = recorded_rules()
    found: set[str] = set()
    for name in names:
        found |= sources(metric_names(rules[name])) if name in rules else {name}
    return found


@dataclass(frozen=True, slots=True)
class Link:
    """A data link to a dashboard, and the label whose value each variable gets."""

    title: str
    uid: str
    labels: dict[str, str]


def unlinked(panel: Json) -> list[str]:
    """Regular expressions of the series of a panel that have no links."""
    return [override["matcher"]["options"].strip("/") for override in panel["fieldConfig"]["overrides"]
            if {"id": "links", "value": []} in override["properties"]]


def links(board: Json) -> Iterator[tuple[Json, Link]]:
    """All data links of all panels."""
    for panel in panels(board):
        renamed = {heading: name for t in panel.get("transformations", ()) if t["id"] == "organize"
                   for name, heading in t["options"]["renameByName"].items()}
        config = panel["fieldConfig"]
        found = [*config["defaults"]["links"], *(link for o in config["overrides"] for p in o["properties"]
                                                 if p["id"] == "links" for link in p["value"])]
        for link in found:
            uid = re.search(r"/d/([a-z-]+)\?", link["url"])
            assert uid, link
            of_field = dict(re.findall(r"var-(\w+)=\$\{__field\.labels\.(\w+)\}", link["url"]))
            named_by = next((t["options"]["valueLabel"] for t in panel.get("transformations", ())
                             if t["id"] == "labelsToFields"), "")
            of_field |= dict.fromkeys(re.findall(r"var-(\w+)=\$\{__field\.name\}", link["url"]), named_by)
            of_row = {variable: renamed[heading] for variable, heading in
                      re.findall(r'var-(\w+)=\$\{__data\.fields\["([^"]+)"\]\}', link["url"])}
            assert len(of_field) + len(of_row) == link["url"].count("var-"), link
            yield panel, Link(link["title"], uid[1], of_field | of_row)
