"""Runs the policies each time a window of half a minute is complete. Findings begin and end after several runs.

A finding begins after ``BEGIN_RUNS`` consecutive runs that yield it, and ends after ``END_RUNS`` runs that do not.
``view.active`` has the keys of active findings, so that a finding can end at a laxer threshold. An exception of a
policy, or a result that tierd cannot use, is reported and stops nothing else.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lustre.layout.model import Layout
from tierd.detect.view import View
from tierd.model import Advice, Evidence, Finding, FindingKey
from tierd.policies.protocol import Choice, ConfiguredPolicy, Policy, Walk
from tierd.refusal import Refusal
from tierd.verify.judgement import Judgement

BEGIN_RUNS = 2
"""Two, because one may be chance."""
END_RUNS = 4
"""A choice: jobs pause."""


@dataclass(slots=True)
class _Streak:
    """A finding as last seen, and the number of consecutive runs that found or missed it."""

    finding: Finding
    seen: int = 0
    missed: int = 0
    holds: bool = False


class PolicyRunner:
    """Runs the configured policies. Findings begin and end only after several consecutive runs."""

    def __init__(self, policies: Iterable[ConfiguredPolicy]) -> None:
        self._policies = tuple(policies)
        self._streaks: dict[FindingKey, _Streak] = {}

    def take_over(self, before: PolicyRunner) -> None:
        kinds = {each.policy.name for each in self._policies}
        self._streaks = {key: replace(streak) for key, streak in before._streaks.items()
                         if streak.finding.kind in kinds}

    @property
    def active(self) -> Collection[FindingKey]:
        return frozenset(key for key, streak in self._streaks.items() if streak.holds)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(streak.finding for streak in self._streaks.values() if streak.holds)

    def run(self, view: View) -> tuple[Finding, ...]:
        """Run all policies once. Returns the active findings."""
        view, seen = replace(view, active=self.active), dict[FindingKey, Finding]()
        for each in self._policies:
            FAULTS.pop((each.policy.name, "find"), None)
            if each.settings.enabled and each.policy.find is not None:
                found = safely_called(each.policy, "find", each.policy.find, view, each.settings)
                seen |= {finding.key: finding for finding in found}
        for key, finding in seen.items():
            streak = self._streaks.setdefault(key, _Streak(finding))
            streak.finding, streak.seen, streak.missed = finding, streak.seen + 1, 0
            streak.holds = streak.holds or streak.seen >= BEGIN_RUNS
        for key in [key for key in self._streaks if key not in seen]:
            streak = self._streaks[key]
            streak.seen, streak.missed = 0, streak.missed + 1
            if not streak.holds or streak.missed >= END_RUNS:
                del self._streaks[key]
        return self.findings


RESULT_TYPES: Mapping[str, Any] = {
    "find": Finding, "find_slowed": Finding, "directories": str, "place": Choice, "walk": Walk, "is_short": str | None,
    "busy_directory": int | float, "why_advice": Refusal, "judge_moves": Judgement | None,
    "judge_default": Judgement | None, "mirrored": Layout, "unmirrored": Layout | None}
"""Type of what each function returns, or of each of several results."""
SEVERAL = {"find", "find_slowed", "directories"}
"""Functions that return several results."""
FALLBACKS: Mapping[str, Callable[..., Any]] = {
    **dict.fromkeys(SEVERAL, lambda *_: ()), "place": lambda layout, *_: Choice(layout),
    "busy_directory": lambda _: float("inf"), "mirrored": lambda layout, _: layout}
"""What a function that fails returns instead, if not None: it changes nothing."""
FAULTS: dict[tuple[str, str], str] = {}
"""Errors of the functions whose last call failed, by policy and function."""


def guarded(policy: Policy) -> Policy:
    """The policy with functions that never fail, besides those that :class:`PolicyRunner` and the engine call."""
    calls = {name: call for name in RESULT_TYPES if name != "find" and (call := getattr(policy, name))}
    safe: dict[str, Any] = {name: partial(safely_called, policy, name, call) for name, call in calls.items()}
    return replace(policy, **safe)


def safely_called(policy: Policy, name: str, call: Callable[..., Any], *arguments: object) -> Any:
    try:
        found = call(*arguments)
        several = tuple(found) if name in SEVERAL else None
        for each in (found,) if several is None else several:
            if not isinstance(each, RESULT_TYPES[name]):
                raise TypeError(f"it returns {each!r}")
            if isinstance(each, Finding) and (wrong := fault_of_finding(each, policy)):
                raise ValueError(wrong)
    except Exception as error:  # noqa: BLE001 -- any error of a policy is reported and stops only this call
        FAULTS[policy.name, name] = f"{name}: {words_of_error(error)}"
        return FALLBACKS[name](*arguments) if name in FALLBACKS else None
    FAULTS.pop((policy.name, name), None)
    return found if several is None else several


def faults_of(name: str) -> str:
    """What is wrong with the functions of a policy now; "" if nothing is."""
    return "; ".join(words for (policy, _), words in sorted(FAULTS.copy().items()) if policy == name)


def words_of_error(error: Exception) -> str:
    """The error of a policy, with the file and the line in which it was raised, if that is not the call in tierd."""
    places = traceback.extract_tb(error.__traceback__)[1:]
    where = f" ({places[-1].filename.rpartition('/')[2]}:{places[-1].lineno})" if places else ""
    return f"{type(error).__name__}: {error}{where}"


def fault_of_finding(finding: Finding, policy: Policy) -> str:
    """Why a finding would fail in what records it, shows it or plans for it; "" if it is as its fields say."""
    if finding.kind != policy.name:  # no plan, judge or setting would be found by this kind
        return f"its finding has the kind {finding.kind!r}"
    for name, of, what in (("time", (int, float), "number"), ("aggressor", str, "text"), ("victim", str, "text"),
                           ("subject", str, "text"), ("sentence", str, "text"), ("evidence", Evidence, "Evidence")):
        if not isinstance(value := getattr(finding, name), of):
            return f"its finding has the {name} {value!r}, which is no {what}"
    for name, part in (("targets", str), ("directories", str), ("tasks", str), ("advice", Advice)):
        if not isinstance(value := getattr(finding, name), tuple) or not all(isinstance(each, part) for each in value):
            return f"its finding has {name} {value!r}, which is no tuple of {part.__name__}"
    finding.evidence.numbers()
    return ""
