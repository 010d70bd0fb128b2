"""Two streams that are slowed by one job in one directory: both cases are judged with its default layout."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Clearing, Site, acting
from tierd.acts import Verdict
from tierd.daemon.remediation import Remediation
from tierd.daemon.states import State

LAYOUT = "default layout of /proj/ingest"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Both cases are being judged."""
    other = replace(STREAM, job_id="ior_other.1003", path="/proj/flow/other.dat")
    cluster = FluidCluster(recorded_test_bed(), (STREAM, other, NOISE))
    site = Site(cluster, Clearing(cluster), acting(tmp_path), tmp_path)
    site.start()
    site.run(until=60)
    yield site
    site.service.close()


def case(site: Site, number: int) -> Remediation:
    return next(each for each in site.service.daemon.store if each.number == number)


def fails(site: Site, number: int) -> None:
    case(site, number).verdict = Verdict.DID_NOT_HELP
    case(site, number).begin_undo("it did not help")
    site.service.daemon.undoing.go_on()
    assert case(site, number).state in {State.UNDONE, State.CLOSED}


def has_flash(site: Site) -> bool:
    return "flash" in str(site.filesystem.layout("/proj/ingest"))


def test_both_are_judged(site: Site) -> None:
    assert sum(sentence.startswith(f"SET {LAYOUT}") for sentence in site.said) == 1
    for number in (1, 2):
        assert [each.entry for each in case(site, number).defaults] == [1]
        (message,) = site.sql(f"SELECT sentence FROM told WHERE finding = {number} AND sentence LIKE 'SET%'")
        assert message[0].startswith(f"SET {LAYOUT}")
    site.run(until=110)
    assert [case(site, number).verdict for number in (1, 2)] == ["helped", "helped"]


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("first", [1, 2])
def test_the_layout_stays_until_it_helps_neither(site: Site, first: int, *, restart: bool) -> None:
    second = 3 - first
    fails(site, first)
    assert has_flash(site)
    assert case(site, first).defaults == []
    assert f"KEPT {LAYOUT}: F{second} relies on it, and its verdict decides" in site.said
    if restart:
        site.restart()
    assert (case(site, second).state, [each.entry for each in case(site, second).defaults]) == (State.JUDGING, [1])
    fails(site, second)
    assert not has_flash(site)


def test_none_is_left_to_a_case_that_does_not_need_it(site: Site) -> None:
    """Nobody would have undone it."""
    one = replace(case(site, 1), verdict=Verdict.HELPED, state=State.KEPT)
    elsewhere = {"places": set(), "finding": replace(one.finding, directories=())}
    for changed in ({"undo_reason": "full"}, {"departed": True}, {"verdict": Verdict.CANNOT_TELL}, elsewhere):
        assert one.relies_on("/proj/ingest", "flash")
        assert not replace(one, **changed).relies_on("/proj/ingest", "flash")
    assert not one.relies_on("/proj/ingest", "other")


@pytest.mark.parametrize("verdict", [Verdict.HARMED_OTHERS, Verdict.NONE])
def test_a_layout_that_harms_or_fills_flash_goes_for_both(site: Site, verdict: Verdict) -> None:
    case(site, 1).verdict = verdict
    case(site, 1).begin_undo("for this reason")
    site.service.daemon.undoing.go_on()
    assert not has_flash(site)
    assert case(site, 2).defaults == []
    site.run(until=70)
    assert not any("REFUSED" in sentence for sentence in site.said)
