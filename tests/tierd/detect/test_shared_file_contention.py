from __future__ import annotations

import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.detect.views import POOLS, halves, look
from tests.tierd.worlds import TARGETS, stream
from tierd.detect.shared_file_contention import DETECTOR
from tierd.model import Facts, Finding, SharedFile


def shared(openers: int, stripes: int | None, targets: tuple[str, ...] = TARGETS[:1], job: str = "mpi.5",
           active: set[tuple[str, str, str]] | None = None) -> list[Finding]:
    layout = Layout((Component(pool="hdd", stripe_count=stripes),), composite=False) if stripes else None
    facts = Facts(pools=POOLS, shared_files=(SharedFile(job, "/proj/run/check point", openers, layout),))
    return look(DETECTOR, halves(stream("mpi.5", 40, seconds=30.0, targets=targets)), facts, active or ())


def test_one_stripe_under_many_writers_should_be_striped() -> None:
    (found,) = shared(64, 1)
    assert found.directories == ("/proj/run",)
    assert found.evidence.numbers()["wanted_objects"] == 4
    assert found.advice[0].command == "lfs setstripe -c 4 -p hdd /proj/run"
    assert found.advice[1].command == "lfs migrate --non-block -c 4 -p hdd '/proj/run/check point'"


def test_on_all_targets_already_it_should_be_overstriped() -> None:
    (found,) = shared(64, 4, TARGETS)
    assert found.advice[0].command == "lfs setstripe -C 32 -p hdd /proj/run"


def test_targets_replace_an_unreadable_layout() -> None:
    (found,) = shared(64, None, TARGETS[:2])
    assert found.evidence.numbers()["objects"] == 2


@pytest.mark.parametrize(("openers", "stripes"), [(7, 1), (8, 4), (64, 32)])
def test_few_openers_or_objects_enough_are_well(openers: int, stripes: int) -> None:
    assert shared(openers, stripes) == []


def test_a_job_that_moves_nothing_waits_for_nothing() -> None:
    assert shared(64, 1, job="idle.9") == []


def test_hysteresis() -> None:
    assert shared(14, 4, TARGETS) == []
    assert shared(14, 4, TARGETS, active={("shared-file-contention", "mpi.5", "/proj/run/check point")})
