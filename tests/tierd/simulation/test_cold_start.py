"""``--cold`` and ``--tierd-starts``: tierd starts when all jobs are at work, and knows nothing of the time before."""

from __future__ import annotations

import pytest

from simulator.fluid.cluster import FluidCluster
from simulator.jobs.large_files import RandomWriter
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import STREAM
from tierd.config.settings import Settings
from tierd.simulation.run import Outcome, run

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
