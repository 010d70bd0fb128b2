import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.tierd.worlds import window
from tierd.daemon.answers import to_json
from tierd.daemon.status import found_case
from tierd.detect.view import View
from tierd.model import Evidence, Finding, OtherEvidence
from tierd.policies.protocol import Common, ConfiguredPolicy, Policy
from tierd.policies.runner import PolicyRunner, faults_of

SEEN = Finding("wet", 0.0, "", "", (), "it rains", Evidence(), subject="garden")


def weather(view: View, _: Common) -> Iterator[Finding]:
    if view.now in {5.0, 15.0, 20.0, 25.0, 35.0, 40.0}:
        yield replace(SEEN, time=view.now)


def test_a_policy_of_another_package_may_give_its_numbers_as_a_mapping() -> None:
    """The interface of policies before evidence was typed; docs/policies.md shows it."""
    def detect(view: View, _: Common) -> Iterator[Finding]:
        yield Finding("wet", view.now, "", "", (), "it rains", {"rain_share": 0.5}, subject="garden")  # type: ignore[arg-type]

    runner = PolicyRunner([ConfiguredPolicy(Policy("wet", Common, detect), Common())])
    runner.run(View([window(0)]))
    (found,) = runner.run(View([window(1)]))
    assert found.evidence == OtherEvidence({"rain_share": 0.5})
    assert pickle.loads(pickle.dumps(found)) == found
    assert to_json(found_case(found, 1, active=True))["evidence"] == {"rain_share": 0.5}


@pytest.mark.parametrize(("changed", "words"), [
    ({"kind": "whet"}, "its finding has the kind 'whet'"),  # it would have no plan, judge or settings
    ("rain", "it returns 'rain'"),
    ({"aggressor": None}, "the aggressor None, which is no text"),
    ({"subject": ["a"]}, "the subject ['a'], which is no text"),
    ({"sentence": 5}, "the sentence 5, which is no text"), ({"time": None}, "the time None, which is no number"),
    ({"directories": "/proj"}, "directories '/proj', which is no tuple of str"),
    ({"advice": ("buy disks",)}, "advice ('buy disks',), which is no tuple of Advice"),
    ({"evidence": None}, "the evidence None, which is no Evidence"),
    ({"evidence": {"share": "x"}}, "could not convert string to float: 'x'")])
def test_a_finding_that_could_not_be_recorded_or_shown_is_a_fault(changed: Any, words: str) -> None:
    """Otherwise the journal or a page would fail, and the daemon with them."""
    def detect(_: View, __: Common) -> Iterator[Any]:
        yield changed if isinstance(changed, str) else replace(SEEN, **changed)

    runner = PolicyRunner([ConfiguredPolicy(Policy("wet", Common, detect), Common()),
                           ConfiguredPolicy(Policy("dry", Common, lambda *_: [replace(SEEN, kind="dry")]), Common())])
    runner.run(View([window(0)]))
    assert [finding.kind for finding in runner.run(View([window(1)]))] == ["dry"]
    assert words in faults_of("wet")


def looks(watch: PolicyRunner, count: int) -> list[bool]:
    return [bool(watch.run(View([window(n)]))) for n in range(count)]


def test_it_begins_after_some_cycles_and_ends_after_some_more() -> None:
    watch = PolicyRunner([ConfiguredPolicy(Policy("wet", Common, weather), Common())])
    assert looks(watch, 12) == [False] * 3 + [True] * 8 + [False], "one odd cycle begins nothing"


def test_findings_hold_with_other_settings_of_their_policy_and_without_it_they_are_gone() -> None:
    before = PolicyRunner([ConfiguredPolicy(Policy("wet", Common, weather), Common())])
    assert looks(before, 4)[-1]
    other = PolicyRunner([ConfiguredPolicy(Policy("wet", Common, weather), Common(enabled=False))])
    other.take_over(before)
    assert other.findings == before.findings
    assert looks(other, 4)[-1] is False, "it ends by the new settings"
    without = PolicyRunner([])
    without.take_over(before)
    assert without.findings == ()


def test_a_policy_sees_the_active_findings() -> None:
    reported: list[bool] = []

    def curious(view: View, _: Common) -> Iterator[Finding]:
        reported.append(SEEN.key in view.active)
        yield SEEN

    watch = PolicyRunner([ConfiguredPolicy(Policy("wet", Common, curious), Common())])
    looks(watch, 3)
    assert reported == [False, False, True]
