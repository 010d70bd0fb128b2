"""``python -m exporter.docs > docs/metrics.md``: the reference of all metrics, made from the collectors themselves."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from exporter import clock, unread
from exporter.collector import Collector
from exporter.collectors import COLLECTORS
from exporter.config import Settings
from exporter.docs_head import HEAD
from exporter.families import Family
from exporter.own import Own, OwnWeb
from exporter.scrape import Scraper
from exporter.web.reload import Web
from lustre.parameters import Roots, Tree

MULTIPLIERS = {
    "mount": "mounts",
    "target": "targets",
    "pool": "pools",
    "operation": "operations seen",
    "event": "events seen",
    "direction": "2 directions",
    "pattern": "2 patterns",
    "jobid": "jobs",
    "state": "states",
    "version": "releases",
    "nid": "network addresses",
    "service": "services",
    "priority": "2 priorities",
    "namespace": "kinds of lock namespaces",
    "nodemap": "nodemaps",
    "mdt": "metadata targets",
    "user": "changelog users",
    "mask": "1",
    "id": "users, groups or projects (`--quota.limit`)",
    "type": "3 types",
    "size": "sizes seen",
    "directory": "3 kinds",
    "result": "2 results",
    "resource": "2 resources",
    "kind": "2 kinds",
    "net": "networks",
    "pages": "3 sizes",
    "parameter": "parameters that reach the limit",
    "flag": "flags set",
    "phase": "2 phases",
    "problem": "problems found",
}
"""What each label multiplies the series of a family by."""


def reference() -> str:
    """The whole document."""
    head = HEAD.replace("UNREAD", unread.table())
    return "\n".join([head, *(section for collector in COLLECTORS for section in _of(collector)), *_own(), ""])


def _of(collector: Collector) -> Iterator[str]:
    yield f"## {collector.name}\n"
    switch = "Off by default; enable with `--collector." if not collector.default else "Disable with `--no-collector."
    yield f"{collector.help[0].upper()}{collector.help[1:]}. {switch}{collector.name}`.\n"
    yield "| name | type | labels | unit | parameter | Lustre | series |\n|---|---|---|---|---|---|---|"
    yield from (_row(family) for family in collector.families)
    yield ""
    yield from (f"- `{family.name}`: {family.help}" for family in collector.families)
    yield ""


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    where = f"`{family.source}`", family.versions, _series(family)
    return "| " + " | ".join((f"`{family.name}`", family.kind, labels, family.unit, *where)) + " |"


def _series(family: Family) -> str:
    if not family.labels:
        return "1"
    factors = [MULTIPLIERS[label] for label in family.labels if label != "fs"] or ["file systems"]
    if family.kind == "histogram":
        factors.append("buckets seen")
    return " × ".join(factors)


def _own() -> Iterator[str]:
    yield "## The exporter itself\n"
    yield "| name | type | labels |\n|---|---|---|"
    with tempfile.TemporaryDirectory() as empty:
        names = frozenset(collector.name for collector in COLLECTORS)
        scraper = Scraper(Tree(Roots.of(empty, empty)), COLLECTORS, Settings(names), clock.monotonic)
        web = Path(empty, "web.yml")
        web.touch()
        metrics = [*Own(scraper).collect(), *OwnWeb(Web(web)).collect()]
    helps = []
    for metric in metrics:
        name = metric.name + ("_total" if metric.type == "counter" else "")
        labels = ", ".join(f"`{label}`" for label in getattr(metric, "_labelnames", ()))
        yield f"| `{name}` | {metric.type} | {labels} |"
        helps.append(f"- `{name}`: {metric.documentation}")
    yield ""
    yield from helps
    yield "\nThe exporter also shows `process_…` and `python_gc_…` of its own process."


if __name__ == "__main__":
    sys.stdout.write(reference())
