"""Default layouts of before a restart go on filling the flash pool; an undo that fails is tried again."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from lustre.layout.model import Layout
from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site
from tierd.acts import Verdict
from tierd.daemon.states import State

FILLING = replace(NOISE, keep=100_000, files_per_second=20.0)


@pytest.fixture
def filling(site: Site) -> Site:
    """A neighbour that keeps its files, on whose directory a default was set that is judged already."""
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, FILLING)))
    site.run_until_said("SET default layout", before=120)
    return site


def judge(site: Site) -> None:
    """As a case that was kept: a restart finds nothing more to judge."""
    journal = site.service.journal
    journal.judgements.add(1, "noisy-neighbour", "flash", 1 << 20, Verdict.HELPED, 1.0, 1.0)


@pytest.mark.parametrize("end", [Site.restart, Site.kill])
def test_a_default_of_before_a_restart_is_undone_when_flash_runs_short(
        filling: Site, end: Callable[[Site], None]) -> None:
    judge(filling)
    end(filling)
    filling.run(until=filling.cluster.now + 240)
    assert any("UNDONE default layout of /proj/ingest: pool 'flash' is down to its reserve" in sentence
               for sentence in filling.said)
    assert filling.filesystem.layout("/proj/ingest") is None or "flash" not in str(
        filling.filesystem.layout("/proj/ingest"))
    space = filling.filesystem.space()
    assert all(space[target].avail_bytes > 0 for target in filling.filesystem.pools()["flash"])


@pytest.mark.parametrize("end", [Site.restart, Site.kill])
def test_an_undo_that_a_restart_interrupts_goes_on(filling: Site, end: Callable[[Site], None]) -> None:
    filling.service.journal.judgements.add(1, "noisy-neighbour", "flash", 1 << 20, Verdict.DID_NOT_HELP, 0.0,
                                            filling.cluster.epoch)
    end(filling)
    filling.run(until=filling.cluster.now + 15)
    layout = filling.filesystem.layout("/proj/ingest")
    assert layout is None or "flash" not in str(layout)
    (case,) = [case for case in filling.service.daemon.cases if case.number == 1]
    assert (case.state, case.verdict) in {(State.UNDONE, "did-not-help"), (State.CLOSED, "did-not-help")}
    assert sum("UNDONE default layout of /proj/ingest: it did not help" in words for words in filling.said) == 1
    filling.restart()
    assert [case.number for case in filling.service.daemon.cases] == [], "nothing is left to undo"


def test_a_failed_undo_is_retried_and_reported_once(filling: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    change = filling.filesystem.set_default_layout
    tries: list[str] = []

    def refused(directory: str, layout: Layout | None) -> None:
        tries.append(directory)
        if len(tries) <= 3:
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), directory)
        change(directory, layout)

    filling.filesystem.set_default_layout = refused  # type: ignore[method-assign]
    filling.run_until_said("UNDONE default layout", before=300)
    assert len(tries) == 4
    assert len([sentence for sentence in filling.said if "FAILED default layout" in sentence]) == 1
