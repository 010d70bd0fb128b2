"""Nodes of older releases, written from Lustre's source: all is found where it was then, and means the same."""

import re
from itertools import pairwise

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as text_parser

from exporter.collectors import COLLECTORS
from tests.exporter.test_exposition import flat
from tests.exporter.test_golden import compare
from tests.exporter.written import NODES, RELEASES, ROLES

VERSIONS = {family.name: family.versions for collector in COLLECTORS for family in collector.families}
CHANGED = {"lustre_version_info", *(f"lustre_{kind}_targets" for kind in ("osc", "mdc", "mgc", "osp"))}
"""Names of releases differ."""
COUNTED_ANEW = {"lustre_osd_discontiguous_pages", "lustre_osd_discontiguous_blocks"}
"""Up to 2.15 gaps, since then runs: one more."""

def family_of(name: str) -> str:
    return name if name in VERSIONS else re.sub(r"_(bucket|sum|count)$", "", name)


@pytest.mark.parametrize(("release", "role"), NODES)
def test_the_whole_exposition(written, exporter, samples, release, role) -> None:
    """Both strict parsers read it, and no family is older than it says."""
    running = exporter(written(release, role))
    text = running.scrape()
    assert (running.skipped(), running.errors(), running.reasons()) == ({}, {}, {})
    compare(f"written-{release}-{role}", text)
    assert flat(text_parser(text.decode())) == flat(openmetrics_parser(running.scrape(openmetrics=True).decode()))
    shown = {family_of(name) for name, _ in samples(text)}
    assert {name: VERSIONS[name] for name in shown if VERSIONS[name].rstrip("+") > release} == {}


@pytest.mark.parametrize("role", ROLES)
def test_the_same_facts_are_the_same_in_every_release(written, exporter, samples, role) -> None:
    shown = {release: samples(exporter(written(release, role)).scrape()) for release in RELEASES}
    for older, newer in pairwise(RELEASES):
        kept = {key: value for key, value in shown[older].items() if family_of(key[0]) not in CHANGED | COUNTED_ANEW}
        lost = {key for key in kept if key not in shown[newer]}
        assert {key for key in lost if dict(key[1]).get("operation") != "brw_read"} == set()
        assert {key: value for key, value in kept.items() if shown[newer].get(key, value) != value} == {}
        assert len(kept) > (20 if role == "router" else 100)
