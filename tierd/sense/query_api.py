"""Prometheus' query API: a query asked, its answer as series, and what is written into one. Anything odd is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tierd.sense.access import SourceError
from tierd.sense.exposition import LONGEST_LABEL_BYTES
from tierd.sense.http import Client, shown
from tierd.sense.scraped import Point, Series

JSON = ("application/json",)


def asked(client: Client, url: str, form: Mapping[str, str], now: float, skew_seconds: float) -> list[Any]:
    """The series a query comes to. Raises SourceError for anything but a whole answer by a clock that is near ours."""
    answer = client.post(url, urlencode(form).encode(), JSON, JSON[0])
    if answer.date is not None and abs(answer.date - now) > skew_seconds:
        raise SourceError(f"{shown(url)}: its clock and ours are {answer.date - now:+.0f} s apart: mend the time "
                          "service")
    try:
        return result_of(json.loads(answer.body))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{shown(url)}: {error}") from error


def result_of(document: Any) -> list[Any]:
    """The series of an answer. Raises ValueError for an error, for warnings and for what is partial.

    >>> result_of({"status": "success", "data": {"resultType": "matrix", "result": []}})
    []
    >>> result_of({"status": "success", "warnings": ["store b is down"], "data": {}})
    Traceback (most recent call last):
    ...
    ValueError: a partial answer: 'store b is down'
    """
    if not isinstance(document, dict):
        raise ValueError("not an answer of a query API")
    if document.get("status") != "success":
        raise ValueError(f"{str(document.get('errorType', 'error'))[:80]!r}: {str(document.get('error', ''))[:300]!r}")
    if document.get("warnings"):
        raise ValueError(f"a partial answer: {str(document['warnings'][0])[:300]!r}")
    data = document.get("data")
    if document.get("isPartial") or (isinstance(data, dict) and data.get("isPartial")):
        raise ValueError("a partial answer")
    if not isinstance(data, dict) or data.get("resultType") != "matrix" or not isinstance(data.get("result"), list):
        raise ValueError("no matrix of samples in the answer")
    found: list[Any] = data["result"]
    return found


def series_of(document: Any) -> Series:
    """One series. Raises ValueError for values that no counter or gauge of ours can have.

    >>> series_of({"metric": {"__name__": "lustre_jobs", "target": "OST0000"}, "values": [[1795000000.5, "3"]]})
    Series(name='lustre_jobs', labels={'target': 'OST0000'}, points=((1795000000.5, 3.0),))
    """
    try:
        labels = {str(key): str(value) for key, value in document["metric"].items()}
        points: tuple[Point, ...] = tuple([(float(at), float(value)) for at, value in document.get("values", ())])
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a series: {type(error).__name__}: {error}") from error
    name = labels.pop("__name__", "")
    longest = max(labels.items(), key=lambda item: len(item[1]), default=("", ""))
    if len(longest[1]) > LONGEST_LABEL_BYTES:
        raise ValueError(f"a label {longest[0][:80]!r} of {len(longest[1])} characters")
    before = -math.inf
    for at, value in points:
        if not before < at < math.inf:
            raise ValueError(f"{name[:80]!r}: samples out of order")
        if not 0 <= value < math.inf:
            raise ValueError(f"{name[:80]!r} of {labels.get('target', '')[:80]!r}: a value that cannot be: {value}")
        before = at
    return Series(name, labels, points)


def quoted(text: str) -> str:
    r"""A string of PromQL.

    >>> print(quoted('a"b\\'))
    "a\"b\\"
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def escaped(text: str) -> str:
    r"""Text that stands for itself in a regular expression of PromQL (RE2).

    >>> print(escaped("OST0000"), escaped("a.b|c"))
    OST0000 a\.b\|c
    """
    return "".join(f"\\{c}" if c in r"\.+*?()|[]{}^$" else c for c in text)
