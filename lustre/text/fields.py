r"""``name: value`` lines, the form of the small files.

>>> fields = parse(b"users: 10\n  max cached: 2961 MB\nnonsense\n")
>>> fields.values, fields.understood
({b'max cached': b'2961 MB', b'users': b'10'}, 2)
>>> number(b"-3"), number(b"9 sec"), number(b"many"), number(None)
(-3, 9, None, None)
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FIELD = re.compile(
    rb'^[ \t]*+(?:- )?((?:"[^"\n]*+"|[^\s:"]++)(?: [^\s:]++)*)[ \t]*+:(?:[ \t]++([^\n]*+)|())\n', re.MULTILINE
)
_NUMBER = re.compile(rb"\s*+(-?+\d{1,20}+)(?![\w.])")


class Fields(NamedTuple):
    """The values by name, and how many lines were such."""

    values: dict[bytes, bytes]
    understood: int


def parse(data: bytes) -> Fields:
    """Every ``name: value`` line of ``data``, indented or not. The first of a name wins."""
    rows = _FIELD.findall(data)
    return Fields({name: value.rstrip() for name, value, _ in reversed(rows)}, len(rows))


def number(value: bytes | None) -> int | None:
    """The whole number a value begins with, whatever its unit; None when there is none."""
    match = _NUMBER.match(value) if value is not None else None
    return None if match is None else int(match[1])
