"""Validators of classes of settings, messages and evidence, and the ranges of settings.

Building a validator takes milliseconds, so each is built once.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import TIMEOUT_MAX
from typing import Annotated, Any, TypeVar

from annotated_types import Ge, Gt, Le, Lt
from pydantic import Strict, TypeAdapter, ValidationError

from tierd.model import Evidence, OtherEvidence

Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Factor = Annotated[float, Ge(1)]
Ratio = Annotated[float, Gt(1)]
Share = Annotated[float, Gt(0), Lt(1)]
ShareOrNone = Annotated[float, Ge(0), Lt(1)]
ShareOrAll = Annotated[float, Gt(0), Le(1)]
Seconds = Annotated[float, Ge(0.01), Le(TIMEOUT_MAX)]
"""What a thread can wait. With less than the lower bound, a choice, it would do nothing but wake."""
Whole = Annotated[int, Le(2**63 - 1)]  # for SQLite and the kernel
Bytes = Annotated[Whole, Gt(0)]
Count = Annotated[Whole, Ge(0)]
AtLeastOne = Annotated[Whole, Ge(1)]
AtLeastTwo = Annotated[Whole, Ge(2)]
Switch = Annotated[bool, Strict()]
T = TypeVar("T")
_validators: dict[type[Any], TypeAdapter[Any]] = {}


def validator_of(kind: type[T]) -> TypeAdapter[T]:
    """The validator of a class, which also writes its objects as JSON."""
    if kind not in _validators:
        _validators[kind] = TypeAdapter(kind)
    return _validators[kind]


def typed_evidence(of: type[Evidence], stored: Mapping[str, float | None]) -> Evidence:
    """Evidence of a type from stored numbers. :class:`OtherEvidence` if a number is missing, or for the base class.

    Numbers that the type does not have are dropped: another version of a policy may have stored them. None is
    infinite, which JSON cannot store.

    >>> typed_evidence(Evidence, {"mounts": 2.0})
    OtherEvidence(values={'mounts': 2.0})
    """
    numbers = {name: float("inf") if value is None else value for name, value in stored.items()}
    try:
        return OtherEvidence(numbers) if of is Evidence else validator_of(of).validate_python(numbers)
    except ValidationError:  # also if the journal holds something other than numbers
        return OtherEvidence(numbers)
