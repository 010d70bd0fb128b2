r"""Texts that are alike but for their numbers: the outline of one tells whether another is of its form, and reads it.

A control character stands for each number, another for blanks that pad it; all else must be the same to the letter. A
parser of any format can make outlines: it says where the numbers are. Outlines are used only where
``lustre/formats/_texts.c`` was compiled.

>>> text = b"read   7 samples [usecs] 1 9 30\n"
>>> outline = of(text, [(7, 8, WANTED), (25, 26, NUMBER), (27, 28, NUMBER), (29, 31, WANTED)], [1, 0])
>>> outline.text
b'read \x0e\x02 samples [usecs] \x01 \x01 \x02\n'
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lustre.formats import compiled, header

NUMBER = b"\x01"
"""A number that is ignored."""
WANTED = b"\x02"
"""One that is taken out: less than 2⁶⁴, and not where a kernel's sum ends (2⁶³ - 1)."""
WANTED_TIME = b"\x03"
"""Digits and points, taken out as text."""
TIME = b"\x04"
COUNTED = b"\x07"
"""A number that is ignored but counts for ``SEEN``."""
SIGNED = b"\x08"
"""A number that is ignored and may have wrapped."""
ZERO = b"\x0b"
"""A number that is taken out; a nonzero one means another form."""
REST_OF_LINE = b"\x0c"
"""Any text up to the end of the line."""
FORGET = b"\x05"
"""Stands for nothing: forget which numbers have been seen."""
SEEN = b"\x06"
"""Stands for nothing: it is another form if all numbers taken out or counted since were zero."""

MOST_FORMS = 4096
LONGEST = 1 << 15
"""Bytes beyond which a text has no outline: none of the kernel's is half as long."""
_NOT_OF_THE_FORM = b"0123456789 \t"
_BLANKS = b"\x0e"
"""However many more blanks: where there is more than one, it is padding."""
_OURS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e]")
Place = tuple[int, int, bytes]
"""Begin, end, and the character that replaces the text."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The outline of a text."""

    text: bytes
    order: bytes
    """For each number taken out, its place among the results, 16 bits each."""


def of(text: bytes, places: Iterable[Place], order: Sequence[int]) -> Outline | None:
    """The outline of this text, the places in their order; None when it is huge, or holds control characters itself."""
    if len(text) > LONGEST or _OURS.search(text):
        return None
    parts: list[bytes] = []
    at = 0
    for begin, end, kind in places:
        between = text[at:begin]
        bare = len(between.rstrip(b" \t"))
        if len(between) - bare > 1 and kind not in {FORGET, SEEN}:
            parts += [between[: bare + 1], _BLANKS, kind]
        else:
            parts += [between, kind]
        at = end
    return Outline(b"".join([*parts, text[at:]]), array("H", order).tobytes())


def times(data: bytes) -> Iterator[Place]:
    """The times of a header; the one since when a file counts is wanted."""
    for match in header.TIME_OF_LINE.finditer(data, 0, header.split(data).end):
        yield match.start(2), match.end(2), WANTED_TIME if match[1] == b"start_time" else TIME


class Form(Protocol):
    """An outline, and what its numbers are."""

    @property
    def outline(self) -> Outline:
        """Outline of the texts of this form."""

    @property
    def timed(self) -> bool:
        """The first that is taken out is the time since when the file counts."""


F = TypeVar("F", bound=Form)


def _letters(data: bytes) -> int:
    """Hash of the text without its numbers."""
    return hash(data.translate(None, _NOT_OF_THE_FORM))


class Forms(Generic[F]):
    """Keeps the forms it has met."""

    def __init__(self, make: Callable[[bytes], F | None], key: Callable[[bytes], int] = _letters) -> None:
        self._make = make
        """Makes the form of a text; None for an unusual text."""
        self._key = key
        """Texts of one form have the same key. Those of two forms should have different keys."""
        self._forms: dict[int, F | None] = {}

    def read(self, data: bytes, like: F | None = None) -> tuple[F, tuple[int, ...], bytes] | None:
        """Form, numbers and start time of a text, perhaps of the form ``like``; None if it must be read as ever."""
        if not compiled.AVAILABLE:
            return None
        if like is None or (found := _numbers(like.outline, data)) is None:
            like, found = self._other(data)
            if like is None or found is None:
                return None
        if like.timed:
            return like, found[1:], found[0]  # type: ignore[return-value]
        return like, found, b""  # type: ignore[return-value]

    def _other(self, data: bytes) -> tuple[F | None, tuple[int | bytes, ...] | None]:
        key = self._key(data)
        known = self._forms.get(key)
        if known is not None and (found := _numbers(known.outline, data)) is not None:
            return known, found
        if len(self._forms) >= MOST_FORMS:
            self._forms.clear()
        made = self._forms[key] = self._make(data)
        return made, None if made is None else _numbers(made.outline, data)


def _numbers(outline: Outline, text: bytes) -> tuple[int | bytes, ...] | None:
    return compiled.numbers(outline.text, outline.order, text)
