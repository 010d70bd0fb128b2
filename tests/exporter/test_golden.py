"""The whole exposition of each recorded tree, word for word. ``make golden`` writes them anew; read the difference."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
    text = exporter(capture("2.17.57/tree-load-1"), osc_per_target=True).scrape("osc", "pools")
    compare("2.17.57-tree-load-1-per-target", text)


def test_two_mounts_of_one_file_system(snapshots, exporter) -> None:
    compare("2.17.57-noisy-create-1m-003", exporter(snapshots("noisy-create-1m", 3).snapshot(3)).scrape())
