"""The few numbers of an ``import`` file that are worth watching, of thousands of connections again and again."""

from __future__ import annotations

from typing import NamedTuple

from lustre.text import compiled
from lustre.text.import_ import parse


class Brief(NamedTuple):
    """What is worth watching of a connection, field by field as in ``Import``."""

    state: bytes | None
    target_version: bytes | None
    connection_attempts: int | None
    timeouts: int | None
    avg_waittime_usec: int | None
    skipped: int


class BriefReader:
    """Reads many of them again and again. A text known but for its digits need not be read whole for a few numbers."""

    def __init__(self) -> None:
        self._skipped: dict[int, tuple[int, list[bool]]] = {}
        """By the hash of the text without digits: lines not understood, and which fields there are none of."""

    def read(self, data: bytes) -> Brief:
        """What ``parse`` says of the same text."""
        form = hash(data.translate(None, b"0123456789"))
        known = self._skipped.get(form)
        if known is not None:
            brief = _brief(data, known[0])
            if _missing(brief) == known[1]:  # a digit may have got into the unit
                return brief
        link = parse(data)
        brief = Brief(*[getattr(link, name) for name in Brief._fields])
        if brief == _brief(data, link.skipped):
            if len(self._skipped) >= MOST_FORMS:
                self._skipped.clear()
            self._skipped[form] = link.skipped, _missing(brief)
        return brief


def _missing(brief: Brief) -> list[bool]:
    return [field is None for field in brief]


MOST_FORMS = 8192
"""A form for each target at worst; a bound all the same."""


def _brief(data: bytes, skipped: int) -> Brief:
    state, version, attempts, timeouts, wait = compiled.following(data, _KEYS)
    wait = wait.removesuffix(b" usecs")
    return Brief(
        state or None,
        version or None,
        int(attempts) if attempts.isdigit() else None,
        int(timeouts) if timeouts.isdigit() else None,
        int(wait) if wait.isdigit() else None,
        skipped,
    )


_KEYS = (
    b"\n    state: ",
    b"\n       target_version: ",
    b"\n       connection_attempts: ",
    b"\n       timeouts: ",
    b"\n       avg_waittime: ",
)


def essence(data: bytes) -> bytes:
    r"""The part of the text that ``Brief`` is made of; the rest tells the time and differs at every reading.

    >>> essence(b"import:\n    state: FULL\n       target_version: 2\n       connection_attempts: 3\n"
    ...         b"       idle: 9 sec\n    rpcs:\n       timeouts: 0\n       avg_waittime: 7 usecs\n")
    b'FULL\n2\n3\n0\n7 usecs'
    """
    parts = compiled.following(data, _KEYS)
    return b"\n".join(parts) if all(parts) else data  # another form: take it for changed
