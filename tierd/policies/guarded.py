"""Functions of policies of other packages: an exception, or a result of no use, is reported and stops nothing else."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lustre.layout.model import Layout
from tierd.model import Advice, Evidence, Finding
from tierd.policies.protocol import Choice, Policy, Walk
from tierd.refusal import Refusal
from tierd.verify.judgement import Judgement

FAULTS: dict[tuple[str, str], str] = {}
"""What the last call of a function went wrong with, by policy and function; without those that went well."""


def guarded(policy: Policy) -> Policy:
    """The policy with functions that never fail. Instead, each returns what changes nothing."""
    def safe(name: str, call: Callable[..., Any] | None, fits: type | tuple[type, ...],
             otherwise: Callable[..., Any] = lambda *_: None) -> Any:
        def checked(*arguments: Any) -> Any:
            try:
                found = call(*arguments) if call is not None else None
                if not isinstance(found, fits):
                    raise TypeError(f"it returns {found!r}")
            except Exception as error:  # noqa: BLE001 -- any error of a policy is reported and stops only this call
                FAULTS[policy.name, name] = f"{name}: {words_of_error(error)}"
                return otherwise(*arguments)
            FAULTS.pop((policy.name, name), None)
            return found
        return call and checked

    def slowed(*arguments: Any) -> tuple[Finding, ...]:
        found = tuple(policy.find_slowed(*arguments)) if policy.find_slowed is not None else ()
        if wrong := next(filter(None, (fault_of_finding(each, policy) for each in found)), ""):
            raise ValueError(wrong)
        return found

    def places(*arguments: Any) -> tuple[str, ...]:
        found = tuple(policy.directories(*arguments)) if policy.directories is not None else ()
        if not all(isinstance(each, str) for each in found):
            raise TypeError(f"it returns {found!r}")
        return found

    moves, default, mirrors, nothing = policy.move_judge, policy.default_judge, policy.mirroring, type(None)
    return replace(
        policy,
        find_slowed=policy.find_slowed and safe("find_slowed", slowed, tuple, lambda *_: ()),
        directories=policy.directories and safe("directories", places, tuple, lambda *_: ()),
        place=safe("place", policy.place, Choice, lambda layout, *_: Choice(layout)),
        walk=safe("walk", policy.walk, Walk),
        busy_directory=safe("busy_directory", policy.busy_directory, (int, float), lambda _: float("inf")),
        is_short=safe("is_short", policy.is_short, (str, nothing)),
        why_advice=safe("why_advice", policy.why_advice, Refusal),
        move_judge=moves and replace(moves, judge=safe("move_judge", moves.judge, (Judgement, nothing))),
        default_judge=default and replace(default, judge=safe("default_judge", default.judge, Judgement)),
        mirroring=mirrors and replace(
            mirrors, added=safe("mirroring", mirrors.added, Layout, lambda layout, _: layout),
            kept=safe("mirroring", mirrors.kept, (Layout, nothing))))


def faults_of(name: str) -> str:
    """What is wrong with the functions of a policy now; "" if nothing is."""
    return "; ".join(words for (policy, _), words in sorted(FAULTS.copy().items()) if policy == name)


def words_of_error(error: Exception) -> str:
    """The error of a policy, with the file and the line in which it was raised, if that is not the call in tierd."""
    places = traceback.extract_tb(error.__traceback__)[1:]
    where = f" ({places[-1].filename.rpartition('/')[2]}:{places[-1].lineno})" if places else ""
    return f"{type(error).__name__}: {error}{where}"


def fault_of_finding(finding: object, policy: Policy) -> str:
    """Why a finding would fail in what records it, shows it or plans for it; "" if it is as its fields say."""
    if not isinstance(finding, Finding):
        return f"it finds {finding!r}, which is no Finding"
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
