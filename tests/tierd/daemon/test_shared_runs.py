"""What was learnt of runs on shared files is still known after a restart."""

from __future__ import annotations

from pathlib import Path

from tests.tierd.simulated import world
from tierd.act.journal.writer import Journal
from tierd.daemon.loop import RUNS_STATE
from tierd.model import SharedFile, SharedRuns
from tierd.sense.facts import runs_to_json


def test_runs_on_shared_files_before_a_restart_count(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    runs = SharedRuns(SharedFile("mpi.7", "/proj/out", 16), 2, 80.0)
    journal.set_state({RUNS_STATE: runs_to_json({("/proj", 1001): runs})})
    journal.close()
    at = world(tmp_path, ())
    at.daemon.gather_facts()
    assert [runs.file.path for runs in at.daemon.facts.known.shared_runs] == ["/proj/out"]
    at.journal.close()
