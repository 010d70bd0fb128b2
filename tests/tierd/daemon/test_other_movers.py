"""Somebody else who moves files is seen, root with ``lfs migrate`` too; what we moved before a restart is ours."""

from dataclasses import replace
from pathlib import Path

from simulator.fluid.cluster import FluidCluster
from tests.tierd.simulated import COVERING, HDD, NOISE, STREAM, world
from tests.tierd.site import Site
from tierd.sense.own_moves import MIN_BYTES

MOVES = "moves files there; tierd leaves the directory alone"


def test_root_who_moves_files_is_a_second_mover(tmp_path: Path) -> None:
    """The job id of its ``lfs migrate`` is ``lfs.0``, as ours may be."""
    at = world(tmp_path, jobs=(STREAM, NOISE))
    at.run(until=30)
    for number in range(3):
        at.filesystem.migrate(at.cluster.make_file(f"{NOISE.directory}/old{number}", 1000).path, COVERING)
    at.run(until=100)
    assert any(f"not done: {NOISE.directory}: lfs.0 {MOVES}" in sentence for sentence in at.said)
    assert list(at.journal.entries()) == []


def test_load_of_another_mover_is_seen_and_nothing_is_done_until_it_is_gone(tmp_path: Path) -> None:
    """Elsewhere, where no finding leads: but two movers never work on one file system."""
    at = world(tmp_path, jobs=(STREAM, replace(NOISE, start_seconds=150.0)), model=FluidCluster)
    large = [at.cluster.make_file(f"/elsewhere/{number}", 64 << 20).path for number in range(3)]
    at.run(until=145)
    for path in large:
        at.filesystem.migrate(path, HDD)
    at.run(until=210)
    assert "another mover: lfs.0 read and wrote" in at.daemon.faults["mover"]
    assert any("lfs.0" in window.jobs for window in at.daemon.windows)
    assert NOISE.job_id in {finding.aggressor for finding in at.daemon.findings}
    assert list(at.journal.entries()) == []
    at.run_until_said("SET default layout", before=510)
    assert "mover" not in at.daemon.faults
    assert {entry.outcome for entry in at.journal.entries()} == {"done"}


def test_our_own_moves_are_no_other_mover_and_are_left_out(site: Site) -> None:
    for number in range(8):
        site.cluster.make_file(f"/proj/keep/{number}", 2 * MIN_BYTES)
    site.shown("promote", "/proj/keep")
    site.run(until=60)
    moved = [entry for entry in site.service.journal.entries() if entry.outcome == "done"]
    assert sum(entry.size_bytes for entry in moved) == 16 * MIN_BYTES
    assert "mover" not in site.service.daemon.faults
    assert not any("lfs.0" in window.jobs for window in site.service.daemon.windows)


def test_moves_before_a_restart_and_undone_ones_are_tierd_s_own(site: Site) -> None:
    paths = [f"/proj/keep/{number}" for number in range(4)]
    for path in paths:
        site.cluster.make_file(path, 1000)
    site.shown("promote", "/proj/keep")
    site.run(until=10)
    assert [entry.outcome for entry in site.service.journal.entries()] == ["done"] * 4
    site.service.close()  # the records of these moves were not read yet
    site.start()
    table = site.service.daemon.table
    site.run(until=site.cluster.now + 5)
    assert table.other_mover_in("/proj/keep", 0.0) == ""
    for number in range(1, 5):
        assert "undone" in site.shown("undo", str(number))
    site.run(until=site.cluster.now + 10)
    assert table.other_mover_in("/proj/keep", 0.0) == ""
    for path in paths:
        site.filesystem.migrate(path, HDD)
        site.filesystem.migrate(path, COVERING)
    site.sql("DELETE FROM actions")
    site.run(until=site.cluster.now + 5)
    assert table.other_mover_in("/proj/keep", 0.0) == "lfs.0"
