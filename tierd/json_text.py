"""JSON that every reader accepts: JSON has no infinity and no NaN, so a number that is not finite is null."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite


def json_text(value: object, indent: int | None = None) -> str:
    """The JSON of a value.

    >>> json_text({"slowdown": float("inf"), "shares": [0.5, float("nan")]})
    '{"slowdown": null, "shares": [0.5, null]}'
    """
    return json.dumps(finite(value), indent=indent, allow_nan=False)


def finite(value: object) -> object:
    """The value with None in place of numbers that are not finite."""
    if isinstance(value, Mapping):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value
