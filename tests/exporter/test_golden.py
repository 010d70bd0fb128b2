"""The whole exposition of each recorded tree, word for word. ``make golden`` writes them anew; read the difference."""

import os
import re
from pathlib import Path

import pytest

from exporter.collectors import COLLECTORS

GOLDEN = Path(__file__).parent.parent / "golden"


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


def test_every_family_has_a_sample_in_some_exposition() -> None:
    shown = {match[1] for path in GOLDEN.glob("*.prom")
             for match in re.finditer(r"^(\w+?)(?:_bucket)?[{ ]", path.read_text(), re.MULTILINE)}  # fmt: skip
    of_limits = {"lustre_jobs_beyond_limit", "lustre_quota_ids_beyond_limit"}
    families = {family.name for collector in COLLECTORS for family in collector.families}
    assert families - shown == of_limits, "put the file into captures/written-from-source, then: make golden"
