"""What a comparison of variants says about a run with tierd."""

from __future__ import annotations

from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.worlds import noise
from tierd.model import Finding, OtherEvidence
from tierd.simulation.comparison import Comparison, recovery_seconds
from tierd.simulation.run import Outcome, found_at


def outcome(rates: tuple[float, ...], *findings: tuple[float, Finding]) -> Outcome:
    return Outcome(60.0, {STREAM.job_id: rates}, findings, (), ())


def test_recovery_counts_from_the_finding_about_the_stream() -> None:
    advice = Finding("read-ahead", 10.0, "", "", (), "", OtherEvidence({}), subject="/mnt/lustre")
    found = Finding("noisy-neighbour", 40.0, NOISE.job_id, STREAM.job_id, (), "", noise())
    with_tierd = outcome((100.0,) * 20 + (60.0,) * 25 + (100.0,) * 15, (10.0, advice), (40.0, found))
    compared = Comparison("", (STREAM,), {"alone": outcome((100.0,) * 60), "tierd": with_tierd}, 0.0, 60.0)
    assert recovery_seconds(compared, 100.0) == 5.0
    only_advice = Comparison("", (STREAM,), {"tierd": outcome((100.0,) * 60, (10.0, advice))}, 0.0, 60.0)
    assert recovery_seconds(only_advice, 100.0) is None


def test_a_finding_that_names_neither_victim_nor_directory_was_found_when_it_was_logged() -> None:
    finding = Finding("statahead", 0, "m.2", "", (), "m.2 lists directories", noise())
    assert found_at(finding, [(5.0, "FOUND statahead: m.2 lists directories")], 9.0) == 5.0
