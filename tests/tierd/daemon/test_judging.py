"""A verdict comes at its time, whatever still waits; one against the act only from what was measured without moves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.tierd.simulated import STREAM, World, world
from tests.tierd.site import READ_AGAIN, altered
from tierd.acts import Outcome
from tierd.config.settings import Settings

SLOWLY = replace(Settings().limits, files_per_second=0.5)
KEPT_FILES = replace(READ_AGAIN, keep=3000)


def said(at: World, words: str) -> list[str]:
    return [sentence for sentence in at.said if words in sentence]


def test_an_act_that_helps_is_kept_though_dozens_of_its_files_still_wait(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=(STREAM, KEPT_FILES), settings=replace(Settings(), limits=SLOWLY))
    at.run_until_said("SET default layout", before=70)
    acted = at.cluster.now
    at.run_until_said("KEPT: it helped", before=acted + 120)
    assert at.gate.waiting > 30
    moved = len(list(at.journal.entries(Outcome.DONE)))
    at.run(until=at.cluster.now + 20)
    assert len(list(at.journal.entries(Outcome.DONE))) > moved + 2, "its moves continue"


def test_before_a_verdict_against_the_act_its_moves_wait(tmp_path: Path) -> None:
    settings = altered(Settings(), limits=SLOWLY, verify={"min_gain": 0.999999, "judge_seconds": 20.0})
    at = world(tmp_path, jobs=(STREAM, KEPT_FILES), settings=settings)
    at.run_until_said("SET default layout", before=70)
    at.cluster.slow_down(2, 1.35)  # a disk gets slow: the stream stays slow whatever the layout
    at.run_until_said("the remaining moves wait while the effect is measured", before=140)
    at.run(until=at.cluster.now + 5)  # what the engine had in hand
    held, moved = at.gate.waiting, len(list(at.journal.entries(Outcome.DONE)))
    assert held > 30
    at.run(until=at.cluster.now + 15)
    assert len(list(at.journal.entries(Outcome.DONE))) == moved
    assert not said(at, "UNDOING")
    at.run_until_said("UNDOING: it did not help", before=220)
    at.run(until=at.cluster.now + 5)
    assert said(at, f"dropped {held} queued moves: it did not help")
    assert at.gate.waiting == 0


def test_moves_wait_while_their_stream_is_slower_than_before_the_act(tmp_path: Path) -> None:
    """The moves themselves may be the reason. Without them, a sick disk shows that the act is not: it stands."""
    settings = altered(Settings(), limits=SLOWLY, verify={"judge_seconds": 20.0})
    at = world(tmp_path, jobs=(STREAM, KEPT_FILES), settings=settings)
    at.run_until_said("SET default layout", before=70)
    at.cluster.slow_down(2, 3.0)
    at.run_until_said("the remaining moves wait while the effect is measured", before=140)
    at.run_until_said("KEPT: the effect cannot be judged", before=220)
    assert not said(at, "UNDOING")
