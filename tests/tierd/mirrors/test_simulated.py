"""A job that reads files again and again, on the simulated test bed: mirrors come, and go when flash is short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from simulator.cluster import Cluster
from tests.tierd.daemon.test_further_findings import READING
from tests.tierd.simulated import world
from tierd.acts import ActKind, Outcome
from tierd.config.load import parse

TEXT = b"""
[act]
on = ['hot-small-files', 'cold-on-flash', 'mirror-on-flash']
[detect.cold_on_flash]
cold_days = 0.0003
[small_files_to_flash]
reserve = 0.0
"""


def test_mirrors_come_and_go(tmp_path: Path) -> None:
    job = replace(READING, files_per_second=1.0, rereads_per_second=20.0, stop_seconds=200.0)
    at = world(tmp_path, (job,), parse(TEXT, "t.toml"), model=Cluster)
    at.run(200)
    moved = [entry for entry in at.journal.entries(Outcome.DONE) if entry.kind == ActKind.MIGRATE]
    assert len(moved) > 10
    assert {entry.layout_after.mirror_count for entry in moved if entry.layout_after is not None} == {2}
    assert any("to a mirror: first 64K on flash" in words for words in at.said)
    both = [at.filesystem.layout(entry.place) for entry in moved]
    assert {part.pool for layout in both if layout is not None for part in layout.components} == {"hdd", "flash"}
    size = {ost: ost.store.space().avail_bytes for ost in at.cluster.osts[:2]}
    for step in range(1, 7):  # slowly, or the default layout would be undone
        for ost in at.cluster.osts[:2]:
            ost.store.withheld_bytes = size[ost] * 14 * step // 100
        at.run(200 + 10 * step)
    at.run(400)
    split = [entry for entry in at.journal.entries(Outcome.DONE) if entry.layout_before is not None
             and entry.layout_before.mirror_count == 2]
    assert len(split) > 5
    for entry in split:
        layout = at.filesystem.layout(entry.place)
        assert layout.components[0].objects == entry.layout_before.components[0].objects, "nothing was copied back"
        assert {part.pool for part in layout.components} == {"hdd"}
