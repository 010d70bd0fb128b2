from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.policies.views import look
from tierd.model import Facts, Finding, MetadataLoad, MetadataService, MetadataSpace
from tierd.policies import metadata_bound, metadata_imbalance

LOAD = MetadataLoad("l-MDT0000", 600.0, 200.0, 100.0, 100.0, 0.0, (("a.1", 300.0), ("b.2", 250.0)), 400.0)
OWN = frozenset({"l-MDT0000"})
BUSY = MetadataService("mds1", 64, 64, 5000.0, 4000.0, 60.0, OWN)
CALM = MetadataService("mds1", 64, 64, 500.0, 50.0, 4.0, OWN)


def found(service: MetadataService, *loads: MetadataLoad, active: bool = False, mdts: int = 1) -> list[Finding]:
    facts = Facts(metadata_loads=loads or (LOAD,), metadata_services=(service,), metadata_targets=mdts)
    return look(metadata_bound.POLICY, facts=facts, active={("metadata-bound", "", "mds of mds1")} if active else ())


def test_an_mds_whose_threads_are_all_in_use_is_reported() -> None:
    (finding,) = found(BUSY)
    assert finding.sentence == ("the MDS of mds1 does 5000 requests/s; requests wait 4.0 ms for a thread, and 60 of 64 "
                                "threads are in use: processors, locks or threads limit it")
    commands = [piece.command for piece in finding.advice]
    assert "lctl set_param mds.MDS.mdt.threads_max=128" in commands
    assert any("higher clock rate" in command for command in commands), "creates are bound by one thread"
    assert any("1.37 times" in piece.effect for piece in finding.advice)


def test_stats_get_batches_and_not_a_higher_clock_rate() -> None:
    (finding,) = found(BUSY, replace(LOAD, creates=50.0, unlinks=0.0, stats=900.0), mdts=2)
    words = " ".join(piece.command for piece in finding.advice)
    assert "statahead_batch_max=64" in words
    assert "clock rate" not in words
    assert "lfs setdirstripe -D -c 1 -i -1" in words


def test_slow_operations_with_free_threads_are_the_devices() -> None:
    (finding,) = found(CALM, replace(LOAD, creates=100.0, unlinks=0.0, stats=900.0, usec_per_operation=6000.0))
    assert ("an operation on l-MDT0000 takes 6.0 ms with 4 of 64 threads in use: the latency of its devices limits "
            "it") in finding.sentence
    assert [piece.command.split(",")[0] for piece in finding.advice] == ["put the MDT on faster SSDs"]


@pytest.mark.parametrize("load", [LOAD, replace(LOAD, creates=1501.0, unlinks=0.0, opens=1525.0, stats=1516.0)],
                         ids=["creates", "as an MDT counts files that are made and stated"])
def test_slow_creates_with_free_threads_may_wait_for_the_lock_of_a_directory(load: MetadataLoad) -> None:
    (finding,) = found(CALM, replace(load, usec_per_operation=6000.0))
    assert finding.sentence.endswith("the lock of a directory, a processor or the latency of its devices limits it; "
                                     "counters do not tell which")
    assert "a separate directory" in finding.advice[0].command
    assert "would not help" not in finding.advice[1].effect


def test_one_job_is_named_instead_of_the_server() -> None:
    (finding,) = found(BUSY, replace(LOAD, jobs=(("a.1", 900.0), ("b.2", 50.0))))
    assert finding.sentence.endswith("; a.1 causes 90% of the operations")
    assert not any("threads_max" in piece.command for piece in finding.advice)
    assert finding.advice[0].where == "in a.1"


@pytest.mark.parametrize(("service", "load"), [
    (CALM, LOAD), (replace(BUSY, wait_usec=500.0), LOAD), (replace(BUSY, threads=0.0), LOAD),
    (replace(BUSY, active=20.0), LOAD), (BUSY, replace(LOAD, creates=1.0, unlinks=0.0, stats=0.0, opens=0.0)),
    (replace(BUSY, mdts=frozenset()), LOAD),
], ids=["calm", "short waits", "unknown threads", "free threads", "few operations", "unknown MDTs"])
def test_other_mds_are_not_reported(service: MetadataService, load: MetadataLoad) -> None:
    assert found(service, load) == []


OTHER = MetadataLoad("l-MDT0001", 0.0, 0.0, 5000.0, 0.0, 0.0, (("c.3", 4900.0),), 300.0)
SLOW = replace(LOAD, creates=150.0, unlinks=0.0, stats=50.0, opens=0.0, jobs=(("a.1", 190.0),),
               usec_per_operation=9000.0)


def of_two(*services: MetadataService, loads: tuple[MetadataLoad, ...] = (SLOW, OTHER)) -> list[Finding]:
    facts = Facts(metadata_loads=loads, metadata_services=services, metadata_targets=2)
    return look(metadata_bound.POLICY, facts=facts)


def test_each_mds_is_measured_by_its_own_mdts() -> None:
    second = replace(CALM, node="mds2", mdts=frozenset({"l-MDT0001"}))
    (finding,) = of_two(CALM, second)
    assert (finding.subject, finding.targets) == ("mds of mds1", ("l-MDT0000",)), "a fast MDT beside it hides nothing"
    assert finding.sentence.endswith("; a.1 causes 95% of the operations"), "and its jobs are not the cause"
    (finding,) = of_two(CALM, second, loads=(replace(SLOW, creates=5000.0), replace(OTHER, stats=1.0)))
    assert finding.subject == "mds of mds1", "an idle MDS is not slow because of another"


def test_a_slow_mdt_is_not_hidden_by_a_fast_one_of_its_mds() -> None:
    (finding,) = of_two(replace(CALM, mdts=frozenset({"l-MDT0000", "l-MDT0001"})))
    assert "an operation on l-MDT0000 takes 9.0 ms" in finding.sentence
    assert finding.targets == ("l-MDT0000",)


def test_the_job_of_a_busy_mds_is_one_of_its_own_mdts() -> None:
    (finding,) = of_two(replace(BUSY, node="mds2", mdts=frozenset({"l-MDT0001"})))
    assert finding.sentence.endswith("; c.3 causes 98% of the operations")
    (finding,) = of_two(BUSY, loads=(LOAD, OTHER))
    assert "causes" not in finding.sentence


def test_hysteresis() -> None:
    between = replace(BUSY, wait_usec=1500.0)
    assert found(between) == []
    assert found(between, active=True)


@given(st.floats(0, 1e5), st.floats(0, 500), st.floats(0, 512), st.floats(0, 1e5))
def test_every_finding_has_advice(wait: float, active: float, threads: float, usec: float) -> None:
    for finding in found(MetadataService("mds1", threads, 512, 100.0, wait, active, OWN),
                         replace(LOAD, usec_per_operation=usec)):
        assert finding.advice


FILL = {"l-MDT0000": MetadataSpace(10, 2, 1000, 1000), "l-MDT0001": MetadataSpace(10, 9, 9000, 9000)}


def uneven(fill: dict[str, MetadataSpace], *loads: MetadataLoad, mdts: int = 2) -> list[Finding]:
    return look(metadata_imbalance.POLICY, facts=Facts(metadata=fill, metadata_loads=loads, metadata_targets=mdts))


def test_an_mdt_that_is_much_fuller_is_reported_with_the_cost_of_a_migration() -> None:
    (finding,) = uneven(FILL)
    assert finding.sentence == "l-MDT0000 is 80% full (bytes or inodes); the median of the other MDTs is 10%"
    assert uneven(FILL, mdts=3) == [], "the space of an MDT is unknown"
    assert finding.advice[1].command == "lfs migrate -m 1 DIRECTORY"
    assert "one request to the MDTs for each entry" in finding.advice[1].effect


def test_an_mdt_that_does_most_is_reported_with_its_jobs() -> None:
    busy = replace(LOAD, creates=5000.0)
    (finding,) = uneven({}, busy, MetadataLoad("l-MDT0001", 100.0))
    assert finding.sentence == ("l-MDT0000 does 5400 operations/s; the other MDTs do 100 operations/s on average; the "
                                "busiest jobs there are a.1, b.2"), "which did a tenth of them"
    assert uneven({}, busy) == uneven({}, replace(LOAD, creates=500.0), MetadataLoad("l-MDT0001", 1.0)) == []
