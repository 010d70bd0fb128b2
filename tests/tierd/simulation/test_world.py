"""tierd on a simulated cluster has the gate of the daemon, without what belongs to this node."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from simulator.cluster import Cluster
from simulator.settings import recorded_test_bed
from tierd.config.settings import Settings
from tierd.simulation.world import wire


def test_neither_the_pause_file_nor_the_windows_of_this_node_hold_a_simulation(tmp_path: Path) -> None:
    pause_file = tmp_path / "pause"
    pause_file.write_text("maintenance\n", encoding="utf-8")
    act = replace(Settings().act, dry_run=True, pause_file=str(pause_file), windows=("Mon-Sun 00:00-00:01",))
    at = wire(Cluster(recorded_test_bed(), ()), replace(Settings(), act=act), tmp_path)
    assert not at.gate.operating_state.held
    assert at.undo.held() is None
    assert not at.gate.dry_run
    at.journal.close()
