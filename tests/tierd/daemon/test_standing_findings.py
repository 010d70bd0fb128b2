"""A finding about a noisy neighbour that stands without an act has a reason, as a code and a sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.daemon.remediation_world import Planned, RemediationWorld
from tests.tierd.simulated import COVERING, world
from tests.tierd.worlds import noise
from tierd.acts import ActKind
from tierd.daemon.remediation import standing_refusal
from tierd.model import Action, Advice, Evidence, Finding
from tierd.refusal import Reason

FOUND = Finding("noisy-neighbour", 0.0, "small.2", "stream.1", (), "it is slow", noise(), ("/a",))
ABSORBED = (Advice("move no files of this job to flash", "", "a write cache takes its writes in"),)
WHOLE_FILE = Layout((Component(0, None, "flash"),), composite=False)


def setup_with(tmp_path: Path, *actions: Action) -> RemediationWorld:
    at = world(tmp_path, jobs=())
    at.cluster.make_directory("/a")
    setup = RemediationWorld(at, Planned(lambda _: actions))
    setup.finding_log.begun(FOUND)
    return setup


@pytest.mark.parametrize(("finding", "reason"), [
    (replace(FOUND, advice_only=True), Reason.UNCLEAR_IO),
    (replace(FOUND, advice_only=True, advice=ABSORBED), Reason.ABSORBED),
    (replace(FOUND, held=True), Reason.UNCONFIRMED)])
def test_one_that_is_only_reported(tmp_path: Path, finding: Finding, reason: Reason) -> None:
    setup = setup_with(tmp_path)
    setup.act([finding])
    assert setup.planned.plans == 0
    (why,) = setup.remediations.refusals(FOUND.key)
    assert (why.reason, why) == (reason, standing_refusal(finding))
    assert bool([words for words in setup.at.said if words.startswith("not done")]) is finding.advice_only


def test_a_window_that_does_not_confirm_it_hides_no_other_reason(tmp_path: Path) -> None:
    setup = setup_with(tmp_path)
    setup.act([FOUND])
    setup.act([replace(FOUND, held=True)])
    assert [why.reason for why in setup.remediations.refusals(FOUND.key)] == [Reason.NOTHING_TO_DO]


def test_one_whose_plan_has_only_advice_is_planned_again(tmp_path: Path) -> None:
    """A file is open; later it is closed."""
    advice = Action(ActKind.ADVISE, WHOLE_FILE, "migrate it when it is closed", FOUND.key, "/a", "/a/b")
    setup = setup_with(tmp_path, advice)
    setup.act([FOUND])
    (why,) = setup.remediations.refusals(FOUND.key)
    assert (why.reason, why.sentence) == (Reason.IN_USE, "/a/b: migrate it when it is closed")
    assert setup.store.get(FOUND.key) is None
    setup.at.cluster.advance(11.0)
    setup.act([FOUND])
    assert setup.planned.plans == 2


def test_one_whose_default_layout_was_refused(tmp_path: Path) -> None:
    setup = setup_with(tmp_path, Action(ActKind.SET_DEFAULT_LAYOUT, COVERING, "because", FOUND.key, "/a"))
    setup.at.filesystem.set_default_layout("/a", COVERING)
    setup.act([FOUND])
    (why,) = setup.remediations.refusals(FOUND.key)
    assert (why.reason, why.sentence) == (Reason.HAS_LAYOUT, "/a: the directory already has this layout")


def test_a_shared_bandwidth_finding_needs_no_reason() -> None:
    assert standing_refusal(replace(FOUND, kind="shared-bandwidth", evidence=Evidence(), advice_only=True)) is None
