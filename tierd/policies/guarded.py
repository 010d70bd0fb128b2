"""Functions of policies of other packages: an exception, or a result of no use, is reported and stops nothing else."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

from lustre.layout.model import Layout
from tierd.model import Advice, Evidence, Finding
from tierd.policies.protocol import Choice, DefaultJudge, Mirroring, MoveJudge, Policy, Walk
from tierd.refusal import Refusal
from tierd.validators import T
from tierd.verify.judgement import Judgement

RESULT_TYPES: Mapping[str, Any] = {
    "find_slowed": Finding, "directories": str, "place": Choice, "walk": Walk, "busy_directory": int | float,
    "is_short": str | None, "why_advice": Refusal, "judge": Judgement | None, "added": Layout, "kept": Layout | None}
"""Type of what each function returns, or of each of several results."""
FALLBACKS: Mapping[str, Callable[..., Any]] = {
    "find_slowed": lambda *_: (), "directories": lambda *_: (), "place": lambda layout, *_: Choice(layout),
    "busy_directory": lambda _: float("inf"), "added": lambda layout, _: layout}
"""What a function that fails returns instead, if not None: it changes nothing."""
FAULTS: dict[tuple[str, str], str] = {}
"""Errors of the functions whose last call failed, by policy and function."""


def guarded(part: T, policy: Policy) -> T:
    """A policy, or a part of it, with functions that never fail. :data:`RESULT_TYPES` has those of each policy."""
    found = {each.name: getattr(part, each.name) for each in fields(part)}  # type: ignore[arg-type]
    safe = {name: partial(safely_called, policy, name, call) for name, call in found.items()
            if call and name in RESULT_TYPES}
    inner = {name: guarded(each, policy) for name, each in found.items()
             if isinstance(each, DefaultJudge | Mirroring | MoveJudge)}
    return replace(part, **safe, **inner)  # type: ignore[type-var]


def safely_called(policy: Policy, name: str, call: Callable[..., Any], *arguments: object) -> Any:
    try:
        found = call(*arguments)
        several = tuple(found) if name in {"find_slowed", "directories"} else None
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
