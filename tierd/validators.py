"""Validators of classes of settings and messages. Building one takes milliseconds, so each is built once."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")
_validators: dict[type[Any], TypeAdapter[Any]] = {}


def validator_of(kind: type[T]) -> TypeAdapter[T]:
    """The validator of a class, which also writes its objects as JSON."""
    if kind not in _validators:
        _validators[kind] = TypeAdapter(kind)
    return _validators[kind]
