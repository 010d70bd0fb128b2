"""A verdict comes at its time, whatever still waits; one against the act only from what was measured without moves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tierd.simulated import STREAM, World, world
from tests.tierd.site import READ_AGAIN
from tierd.config.settings import Settings
from tierd.daemon.remediation import has_departed
from tierd.model import JobLoad, Window

SLOWLY = replace(Settings().limits, files_per_second=1.0)
KEPT_FILES = replace(READ_AGAIN, keep=3000)


def said(at: World, words: str) -> list[str]:
    return [sentence for sentence in at.said if words in sentence]


def test_an_act_that_helps_is_kept_though_hundreds_of_its_files_still_wait(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=(STREAM, KEPT_FILES), settings=replace(Settings(), limits=SLOWLY))
    at.run_until_said("SET default layout", before=70)
    acted = at.cluster.now
    at.run_until_said("KEPT: it helped", before=acted + 120)
    assert at.gate.waiting > 100
    moved = len(list(at.journal.entries("done")))
    at.run(until=at.cluster.now + 20)
    assert len(list(at.journal.entries("done"))) > moved + 4, "its moves continue"


def test_before_a_verdict_against_the_act_its_moves_wait(tmp_path: Path) -> None:
    settings = Settings()
    verify = replace(settings.verify, min_gain=0.999999, judge_seconds=20.0)
    settings = replace(settings, limits=SLOWLY, verify=verify)
    at = world(tmp_path, jobs=(STREAM, KEPT_FILES), settings=settings)
    at.run_until_said("SET default layout", before=70)
    at.cluster.slow_down(2, 3.0)  # a disk gets slow: the stream stays slow whatever the layout
    at.run_until_said("the remaining moves wait while the effect is measured", before=140)
    at.run(until=at.cluster.now + 5)  # what the engine had in hand
    held, moved = at.gate.waiting, len(list(at.journal.entries("done")))
    assert held > 50
    at.run(until=at.cluster.now + 15)
    assert len(list(at.journal.entries("done"))) == moved
    assert not said(at, "UNDOING")
    at.run_until_said("UNDOING: it did not help", before=220)
    at.run(until=at.cluster.now + 5)
    assert said(at, f"dropped {held} queued moves: it did not help")
    assert at.gate.waiting == 0


def looks(*jobs: str, seconds: float = 5.0) -> list[Window]:
    return [Window(n * seconds, (n + 1) * seconds, {("t", job): JobLoad("t", job, reads=1.0)}, {})
            for n, job in enumerate(jobs)]


@pytest.mark.parametrize(("windows", "gone"), [
    (looks("a", "b", "b"), True), (looks("a", "b"), False), (looks("b", "b", "a"), False),
    (looks("b", "a", "b"), False), (looks("b"), False), (looks("b", seconds=60.0), False),
    (looks("b", "b", seconds=60.0), True), (looks("b", "b", seconds=2.0), False), ([], False)])
def test_a_job_has_departed_after_two_looks_and_ten_seconds_without_it(windows: list[Window], gone: bool) -> None:
    assert has_departed("a", windows) is gone


def test_an_array_has_departed_with_its_last_task() -> None:
    assert not has_departed("77_[]", looks("b", "77_2", "b"), ("77_1", "77_2"))
    assert not has_departed("77_[]", looks("b", "77_9", "b"), ("77_1", "77_2"))
    assert has_departed("77_[]", looks("77_1", "b", "b"), ("77_1", "77_2"))
