"""The dashboards as JSON, taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
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


def recorded_rules() -> dict[str, str]:
    """Name and expression of every recording rule."""
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
    return re.sub(r"\$(fs|pool|target|jobid|job)\b", ".*", expr)
