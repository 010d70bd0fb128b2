"""The whole exposition of each recorded tree and written node, word for word; and what is the same in all releases.

``make golden`` writes them anew; read the difference.
"""

import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as text_parser

from exporter.collectors import COLLECTORS
from tests.exporter.test_exposition import flat
from tests.exporter.written import NODES, RELEASES, ROLES

GOLDEN = Path(__file__).parent.parent / "golden"
VERSIONS = {family.name: family.versions for collector in COLLECTORS for family in collector.families}
CHANGED = {"lustre_version_info", *(f"lustre_{kind}_targets" for kind in ("osc", "mdc", "mgc", "osp"))}
"""Names of releases differ."""
COUNTED_ANEW = {"lustre_osd_discontiguous_pages", "lustre_osd_discontiguous_blocks"}
"""Up to 2.15 gaps, since then runs: one more."""


def compare(name: str, text: bytes) -> None:
    path = GOLDEN / f"{name}.prom"
    if os.environ.get("GOLDEN") == "rewrite":
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text)
    assert text.decode() == path.read_text()


@pytest.mark.parametrize("name", ["tree-idle", "tree-load-1", "tree-load-2"])
def test_recorded_tree(capture, exporter, name) -> None:
    compare(f"2.17.57-{name}", exporter(capture(f"2.17.57/{name}")).scrape())


def test_every_target_by_itself(capture, exporter) -> None:
    running = exporter(capture("2.17.57/tree-load-1"), osc_per_target=True, osp_per_target=True)
    compare("2.17.57-tree-load-1-per-target", running.scrape("osc", "pools", "osp"))


def test_two_mounts_of_one_file_system(snapshots, exporter) -> None:
    compare("2.17.57-noisy-create-1m-003", exporter(snapshots("noisy-create-1m", 3)).scrape())


@pytest.mark.parametrize("name", ["noisy-create-1m", "control-slow-disk"])
def test_a_later_scrape_shows_what_an_exporter_started_then_shows(snapshots, exporter, tmp_path, name) -> None:
    link = tmp_path / "now"
    link.symlink_to(snapshots(name, 3))
    running = exporter(link)
    earlier = running.scrape()
    link.unlink()
    link.symlink_to(snapshots(name, 20))
    later = running.scrape()
    assert later != earlier
    assert later.splitlines() == exporter(snapshots(name, 20)).scrape().splitlines()


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


def test_every_family_has_a_sample_in_some_exposition() -> None:
    shown = {match[1] for path in GOLDEN.glob("*.prom")
             for match in re.finditer(r"^(\w+?)(?:_bucket)?[{ ]", path.read_text(), re.MULTILINE)}  # fmt: skip
    of_limits = {"lustre_jobs_beyond_limit", "lustre_quota_ids_beyond_limit"}
    families = {family.name for collector in COLLECTORS for family in collector.families}
    assert families - shown == of_limits, "put the file into captures/written-from-source, then: make golden"
