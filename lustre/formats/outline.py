r"""Outlines of texts that differ only in their numbers. An outline matches texts of its form and reads their numbers.

In an outline, one control character stands for each number, and another for the spaces that pad it. All other bytes
must match exactly. The parser of a format can make an outline, because it knows the positions of the numbers. Outlines
are used only if ``lustre/formats/_texts.c`` was compiled.

>>> text = b"read   7 samples [usecs] 1 9 30\n"
>>> wanted, ignored = Opcode.WANTED, Opcode.NUMBER
>>> outline = of(text, [(7, 8, wanted), (25, 26, ignored), (27, 28, ignored), (29, 31, wanted)], [1, 0])
>>> outline.text
b'read \x17\x0f samples [usecs] \x0e \x0e \x0f\n'
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lustre.formats import compiled, header
from lustre.formats.opcodes import Opcode

MOST_FORMS = 4096
LONGEST = 1 << 15
"""Length in bytes above which a text gets no outline. The kernel's texts are less than half as long."""
_EXTRACTED = frozenset({Opcode.WANTED, Opcode.WANTED_TIME, Opcode.ZERO})
_NOT_OF_THE_FORM = b"0123456789 \t"
_OURS = re.compile(b"[%b]" % re.escape(b"".join(Opcode)))
Place = tuple[int, int, Opcode]
"""Begin, end, and the character that replaces the text."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The outline of a text."""

    text: bytes
    order: bytes
    """For each extracted number, its position in the result, 16 bits each."""


def of(text: bytes, places: Iterable[Place], order: Sequence[int]) -> Outline | None:
    """Make the outline of a text from its places, in order. None for an unusual text.

    It is unusual if it is too long, if it has control characters, or if it has not one number for each position in
    ``order``, for example because its header has two start times.
    """
    places = [*places]
    if len(text) > LONGEST or _OURS.search(text) or sum(kind in _EXTRACTED for _, _, kind in places) != len(order):
        return None
    parts: list[bytes] = []
    at = 0
    for begin, end, kind in places:
        between = text[at:begin]
        bare = len(between.rstrip(b" \t"))
        if len(between) - bare > 1 and kind not in {Opcode.FORGET, Opcode.SEEN}:
            parts += [between[: bare + 1], Opcode.BLANKS, kind]
        else:
            parts += [between, kind]
        at = end
    return Outline(b"".join([*parts, text[at:]]), array("H", order).tobytes())


def times(data: bytes) -> Iterator[Place]:
    """Yield the places of the times in the header. Only the start time is extracted."""
    for match in header.TIME_OF_LINE.finditer(data, 0, header.split(data).end):
        yield match.start(2), match.end(2), Opcode.WANTED_TIME if match[1] == b"start_time" else Opcode.TIME


class Form(Protocol):
    """An outline and the meaning of its numbers."""

    @property
    def outline(self) -> Outline:
        """Outline of the texts of this form."""

    @property
    def timed(self) -> bool:
        """Whether the first extracted value is the time at which counting started."""


F = TypeVar("F", bound=Form)


def _letters(data: bytes) -> int:
    """Hash of the text without its numbers."""
    return hash(data.translate(None, _NOT_OF_THE_FORM))


class Forms(Generic[F]):
    """Cache of the forms of earlier texts."""

    def __init__(self, make: Callable[[bytes], F | None]) -> None:
        """``make`` returns the form of a text; None for an unusual text."""
        self._make = make
        self._forms: dict[int, F | None] = {}
        """By the letters of a text."""

    def read(self, data: bytes, like: F | None = None) -> tuple[F, tuple[int, ...], bytes] | None:
        """Return form, numbers and start time of a text; None if ``parse`` must read it. Tries ``like`` first."""
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
        key = _letters(data)
        known = self._forms.get(key)
        if known is not None and (found := _numbers(known.outline, data)) is not None:
            return known, found
        if len(self._forms) >= MOST_FORMS:
            self._forms.clear()
        made = self._forms[key] = self._make(data)
        return made, None if made is None else _numbers(made.outline, data)


def _numbers(outline: Outline, text: bytes) -> tuple[int | bytes, ...] | None:
    return compiled.numbers(outline.text, outline.order, text)
