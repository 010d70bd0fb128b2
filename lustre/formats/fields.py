r"""Parses ``name: value`` lines, the form of many small parameter files.

>>> fields = parse(b"users: 10\n  max cached: 2961 MB\nnonsense\n")
>>> fields.values, fields.understood
({b'max cached': b'2961 MB', b'users': b'10'}, 2)
>>> number(b"-3"), number(b"9 sec"), number(b"many"), number(None)
(-3, 9, None, None)
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lustre.formats.header import WRAPPED

FIELD = re.compile(
    rb'^[ \t]*+(?:- )?((?:"[^"\n]*+"|[^\s:"]++)(?: [^\s:]++)*)[ \t]*+:(?:[ \t]++([^\n]*+)|())\n', re.MULTILINE
)
_WORDS = re.compile(rb"[a-z_-]{1,40}+(?:,[a-z_-]{1,40}+)*")
_NUMBER = re.compile(rb"\s*+(-?+\d{1,20}+)(?![\w.])")


class Fields(NamedTuple):
    """The values by name, and the number of lines that matched."""

    values: dict[bytes, bytes]
    understood: int


def parse(data: bytes) -> Fields:
    """Read each ``name: value`` line, indented or not. If a name appears twice, the first line counts."""
    rows = FIELD.findall(data)
    return Fields({name: value.rstrip() for name, value, _ in reversed(rows)}, len(rows))


def number(value: bytes | None) -> int | None:
    """Return the integer at the start of a value, whatever the unit; None if the value does not start with one."""
    match = _NUMBER.match(value) if value is not None else None
    return None if match is None else int(match[1])


class Naturals:
    """Reads counts from the values. A negative count has wrapped and is refused.

    >>> numbers = Naturals({b"good": b"7", b"none": b"N/A", b"bad": b"-1", b"more": b"2 seconds"})
    >>> numbers.get(b"good"), numbers.get(b"none"), numbers.get(b"bad"), numbers.refused
    (7, None, None, 1)
    >>> numbers.sum(b"good", b"more"), numbers.sum(b"good", b"absent"), numbers.sum()
    (9, None, None)
    """

    __slots__ = ("_refused", "_values")

    def __init__(self, values: dict[bytes, bytes]) -> None:
        self._values = values
        self._refused: set[bytes] = set()

    @property
    def refused(self) -> int:
        """Number of requested counts that had wrapped."""
        return len(self._refused)

    def get(self, name: bytes) -> int | None:
        value = number(self._values.get(name))
        if value is None or 0 <= value < WRAPPED:
            return value
        self._refused.add(name)
        return None

    def sum(self, *names: bytes) -> int | None:
        known = [value for value in map(self.get, names) if value is not None]
        return sum(known) if known and len(known) == len(names) else None


def words(value: bytes | None) -> tuple[bytes, ...]:
    """Split a list of words at the commas; an empty tuple for any other text.

    >>> words(b"inconsistent,auto"), words(b""), words(None), words(b"a b")
    ((b'inconsistent', b'auto'), (), (), ())
    """
    return tuple(value.split(b",")) if value is not None and _WORDS.fullmatch(value) else ()
