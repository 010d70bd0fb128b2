"""Rule files with a few of the rules, for promtool: evaluating all of them takes many times as long."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.dashboards.files import metric_names

Groups = list[dict[str, Any]]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader, where it is installed, is ten times as fast."""


def read(file: Path) -> Any:
    """Content of a YAML file."""
    return yaml.load(file.read_bytes(), LOADER)


def groups_of(files: Iterable[Path]) -> Groups:
    """Groups of rule files, in their order."""
    return [group for file in files for group in read(file)["groups"]]


def rules_for(alerts: Collection[str], groups: Groups) -> dict[str, Any]:
    """A rule file with the rules of some alerts and the recording rules that they need, directly or indirectly.

    No other rule changes whether these alerts fire.
    """
    rules = [rule for group in groups for rule in group["rules"]]
    exprs = {text for rule in rules if rule.get("alert") in alerts
             for text in (rule["expr"], *rule.get("annotations", {}).values())}
    recorded: set[str] = set()
    while more := {name for expr in exprs for name in metric_names(expr)} - recorded:
        recorded |= more
        exprs |= {rule["expr"] for rule in rules if rule.get("record") in more}
    narrowed = [{**group, "rules": [rule for rule in group["rules"]
                                    if rule.get("alert") in alerts or rule.get("record") in recorded]}
                for group in groups]
    return {"groups": [group for group in narrowed if group["rules"]]}


def order_of(groups: Groups) -> list[str]:
    """Names of groups in the order of evaluation: recording rules first."""
    return [group["name"] for group in sorted(groups, key=lambda group: any("alert" in r for r in group["rules"]))]
