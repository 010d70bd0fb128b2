"""Runs of tierd on a simulated cluster: what it knows, what is said about it, and what does not hold it."""

from dataclasses import replace
from pathlib import Path

import pytest

from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.jobs.large_files import RandomWriter
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.worlds import noise
from tierd.config.settings import Settings
from tierd.model import Finding, OtherEvidence
from tierd.simulation.comparison import Comparison, recovery_seconds
from tierd.simulation.run import Outcome, found_at, run
from tierd.simulation.world import wire

STARTS = 20.0


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    jobs = (STREAM, RandomWriter(start_seconds=2.0, processes_count=16))
    return run(FluidCluster(recorded_test_bed(), jobs), jobs, 100.0, policy=Settings(), tierd_starts=STARTS)


def test_files_that_were_opened_before_the_start_are_not_known(outcome: Outcome) -> None:
    """The file was opened once, before tierd's changelog reader was registered."""
    assert {finding.directories for _, finding in outcome.findings if finding.aggressor == "fio_rand.1001"} == {()}


def test_a_finding_has_the_time_of_its_log_line(outcome: Outcome) -> None:
    """Not that of the end of the cycle, up to five seconds later."""
    logged = [time for time, words in outcome.log if words.startswith("FOUND noisy-neighbour")]
    assert [time for time, finding in outcome.findings if finding.kind == "noisy-neighbour"] == logged


def with_rates(rates: tuple[float, ...], *findings: tuple[float, Finding]) -> Outcome:
    return Outcome(60.0, {STREAM.job_id: rates}, findings, (), ())


def test_recovery_counts_from_the_finding_about_the_stream() -> None:
    advice = Finding("read-ahead", 10.0, "", "", (), "", OtherEvidence({}), subject="/mnt/lustre")
    found = Finding("noisy-neighbour", 40.0, NOISE.job_id, STREAM.job_id, (), "", noise())
    with_tierd = with_rates((100.0,) * 20 + (60.0,) * 25 + (100.0,) * 15, (10.0, advice), (40.0, found))
    compared = Comparison("", (STREAM,), {"alone": with_rates((100.0,) * 60), "tierd": with_tierd}, 0.0, 60.0)
    assert recovery_seconds(compared, 100.0) == 5.0
    only_advice = Comparison("", (STREAM,), {"tierd": with_rates((100.0,) * 60, (10.0, advice))}, 0.0, 60.0)
    assert recovery_seconds(only_advice, 100.0) is None


def test_a_finding_that_names_neither_victim_nor_directory_was_found_when_it_was_logged() -> None:
    finding = Finding("statahead", 0, "m.2", "", (), "m.2 lists directories", noise())
    assert found_at(finding, [(5.0, "FOUND statahead: m.2 lists directories")], 9.0) == 5.0


def test_neither_the_pause_file_nor_the_windows_of_this_node_hold_a_simulation(tmp_path: Path) -> None:
    pause_file = tmp_path / "pause"
    pause_file.write_text("maintenance\n", encoding="utf-8")
    act = replace(Settings().act, dry_run=True, pause_file=str(pause_file), windows=("Mon-Sun 00:00-00:01",))
    at = wire(Cluster(recorded_test_bed(), ()), replace(Settings(), act=act), tmp_path)
    assert not at.gate.operating_state.held
    assert at.undo.held() is None
    assert not at.gate.dry_run
    at.journal.close()
