"""Runs the policies each time a window of half a minute is complete. Findings begin and end after several runs.

A finding begins after ``BEGIN_RUNS`` consecutive runs that yield it, and ends after ``END_RUNS`` runs that do not.
``view.active`` has the keys of active findings, so that a finding can end at a laxer threshold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from tierd.detect.view import View
from tierd.model import Finding, FindingKey
from tierd.policies.guarded import fault_of_finding, words_of_error
from tierd.policies.protocol import ConfiguredPolicy
from tierd.policies.registry import BUILT_IN

_OWN = frozenset(policy.name for policy in BUILT_IN)
"""Policies whose findings are as their types say: there may be hundreds of them in a cycle."""
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
        self.faults: dict[str, str] = {}
        """Errors of the policies that failed in the last run. Other policies are not affected."""

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
        view = replace(view, active=self.active)
        self.faults = {}
        seen = {finding.key: finding for policy in self._policies for finding in self._found(policy, view)}
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

    def _found(self, policy: ConfiguredPolicy, view: View) -> Iterator[Finding]:
        """Findings of one policy. An exception of a policy must not stop the daemon."""
        try:
            find = policy.policy.find if policy.settings.enabled else None
            for finding in find(view, policy.settings) if find is not None else ():
                if policy.policy.name not in _OWN and (wrong := fault_of_finding(finding, policy.policy)):
                    raise ValueError(wrong)
                yield finding
        except Exception as error:  # noqa: BLE001 -- any error of a policy is reported and disables only that policy
            self.faults[policy.policy.name] = words_of_error(error)
