"""Mode ``ask``: a plan waits until an administrator applies or declines it. ``apply`` also repeats what was undone."""

import pytest

from tests.tierd.sense.clocks import SettableClock
from tests.tierd.site import Site
from tierd.act.operating_state import Approvals
from tierd.acts import ActKind, Outcome
from tierd.config.act import Mode


@pytest.fixture
def asking(site: Site) -> Site:
    """The site in mode ask, with a plan that waits."""
    site.restart(act={"mode": Mode.ASK})
    site.run_until_said("waits for approval", before=100)
    return site


def kinds_done(site: Site) -> list[ActKind]:
    return [entry.kind for entry in site.service.journal.entries()]


def test_a_plan_waits_and_says_what_it_would_do_and_bring(asking: Site) -> None:
    (sentence,) = [each for each in asking.said if "waits for approval" in each]
    for words in ("set the default of /proj/ingest (first 1M on flash", "ior_stream.1002 may gain ", " to ",
                  "tierctl apply F1, or tierctl decline F1"):
        assert words in sentence
    asking.run(until=asking.cluster.now + 60)
    assert kinds_done(asking) == [], "nothing is done before the answer"
    status = asking.shown("status")
    assert "mode ask" in status
    assert "waits for approval to set the default" in status
    _, page = asking.fetched("/")
    assert "tierctl apply F1" in page
    assert "tierctl decline F1" in page
    _, metrics = asking.fetched("/metrics")
    assert 'tierd_waiting_plan_since_timestamp_seconds{aggressor="mdt_small.1001",finding="F1",fs="lustre"' in metrics


def test_an_approved_plan_is_carried_out_and_judged(asking: Site) -> None:
    assert asking.shown("apply", "F1").startswith("F1: its plan is carried out")
    asking.run_until_said("SET default layout", before=asking.cluster.now + 15)
    assert any(each.startswith("APPROVED by ") for each in asking.said)
    assert "already carried out: tierctl undo reverts it" in asking.failed("decline", "F1")
    assert "the journal has no finding F99" in asking.failed("apply", "F99")
    asking.run_until_said("KEPT: it helped", before=asking.cluster.now + 150)
    assert ActKind.SET_DEFAULT_LAYOUT in kinds_done(asking)


def test_a_declined_plan_is_put_aside_for_a_day_even_over_a_restart(asking: Site) -> None:
    asking.shown("decline", "f1")
    asking.restart()
    asking.run(until=asking.cluster.now + 60)
    assert kinds_done(asking) == []
    assert "declined by " in asking.shown("status")
    _, metrics = asking.fetched("/metrics")
    assert "tierd_waiting_plan_since_timestamp_seconds{" not in metrics
    (found,) = asking.service.daemon.findings
    assert asking.service.gate.approvals.of(found.key) is not None
    other = SettableClock()
    for days, why in ((1, "an answer expires"), (-30, "the clock was ahead when it was given")):
        other.at = asking.service.node.clock.now() + days * 86_400
        assert Approvals(asking.service.journal, other).of(found.key) is None, why


def test_what_was_undone_is_done_again_by_apply_alone_in_any_mode(site: Site) -> None:
    """Who declined it was told that it is done again."""
    site.run_until_said("SET default layout", before=100)
    site.shown("undo", "F1")
    site.run(until=site.cluster.now + 40)
    assert "no plan for it waits for approval" in site.failed("decline", "F1")
    refused = site.service.daemon.remediations.refusals(site.service.daemon.findings[0].key)
    assert kinds_done(site).count(ActKind.SET_DEFAULT_LAYOUT) == 1, refused
    assert "done again" in site.shown("apply", "F1")
    site.run(until=site.cluster.now + 20)
    assert kinds_done(site).count(ActKind.SET_DEFAULT_LAYOUT) == 2
    assert site.filesystem.layout("/proj/ingest") is not None


def test_without_a_plan_no_answer_says_that_it_is_carried_out(site: Site) -> None:
    site.shown("pause", "away")
    site.run_until_said("FOUND noisy-neighbour", before=100)
    for command in ("apply", "decline"):
        assert "no plan for it waits for approval" in site.failed(command, "F1")


def test_the_gate_lets_nothing_through_that_nobody_approved(asking: Site) -> None:
    (finding,) = asking.service.daemon.findings
    plan = asking.service.daemon.planning.preview_plan(finding)
    assert [action.kind for action in plan.actions] == [ActKind.SET_DEFAULT_LAYOUT], "tierctl plan shows it"
    asking.service.gate.submit(plan.actions, 1)
    asking.run(until=asking.cluster.now + 10)
    assert [entry.outcome for entry in asking.service.journal.entries()] == [Outcome.REFUSED]
