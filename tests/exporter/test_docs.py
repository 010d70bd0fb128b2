"""Walks everything that is collected: names, units, help, and the reference made of them."""

import re
from operator import attrgetter
from pathlib import Path

import pytest

from exporter.collectors import COLLECTORS
from scripts import metrics_reference

FAMILIES = [family for collector in COLLECTORS for family in collector.families]
KNOWN = {
    "fs", "mount", "target", "pool", "operation", "direction", "event", "mask", "pattern", "jobid", "state", "version",
    "nid", "service", "priority", "namespace", "nodemap", "mdt", "user", "id", "type", "size", "directory", "result",
    "resource", "kind", "parameter", "net", "pages", "flag", "phase", "setting",
    "problem", "policy", "by", "rule", "condition", "path", "rwid", "roid", "lqa",
}  # fmt: skip
PARAMETER = r"[a-z_]+(-\*)?(\.([A-Za-z_]+(-[a-z]+)?|\*))*"


def test_names_come_once() -> None:
    names = [family.name for collector in COLLECTORS for family in collector.families]
    assert len(names) == len(set(names))
    assert len({collector.name for collector in COLLECTORS}) == len(COLLECTORS)


@pytest.mark.parametrize("family", FAMILIES, ids=attrgetter("name"))
def test_a_family_follows_the_conventions(family) -> None:
    assert re.fullmatch(r"lustre_[a-z]+(_[a-z]+)*", family.name)
    assert (family.kind == "counter") == family.name.endswith("_total")
    base = family.name.removesuffix("_total")
    assert not re.search(r"_(count|sum|bucket|created)$", base)
    assert not base.endswith("_info") or (family.kind == "gauge" and family.help.startswith("Always 1, "))
    assert family.help[0].isupper()
    assert family.help.endswith(".")
    assert set(family.labels) <= KNOWN
    assert "fs" not in family.labels[1:]
    assert re.fullmatch(rf"{PARAMETER}(, {PARAMETER})*", family.source)
    assert re.fullmatch(r"2\.\d\d\+", family.versions)


def test_the_reference_is_up_to_date() -> None:
    written = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    assert written == metrics_reference.reference(), "run: python -m scripts.metrics_reference > docs/metrics.md"


def test_metrics_have_the_documented_labels(capture, exporter, samples) -> None:
    promised = {family.name: set(family.labels) for collector in COLLECTORS for family in collector.families}
    for name, labels in samples(exporter(capture("2.17.57/tree-load-1")).scrape()):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        family = name if name in promised else base
        assert {label for label, _ in labels} - {"le"} == promised[family], name
