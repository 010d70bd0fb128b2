r"""Files of which each line, or each group of lines, has one form.

>>> parse(b"a 1\n?\nb 2\n", re.compile(rb"^(\w) (\d)\n", re.MULTILINE), lambda name, count: (name, int(count)))
Rows(rows=((b'a', 1), (b'b', 2)), skipped=1)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lustre.formats import header

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rows(Generic[T]):
    """Records of a file, in the order printed."""

    rows: tuple[T, ...]
    skipped: int
    """Number of lines that are not understood."""


def parse(data: bytes, row: re.Pattern[bytes], make: Callable[..., T],
          heading: re.Pattern[bytes] | None = None) -> Rows[T]:
    """Read all lines of the form ``row``, from whose groups ``make`` makes a record."""
    found = row.findall(data)
    headings = len(heading.findall(data)) if heading is not None else 0
    rows = [make(*each) if isinstance(each, tuple) else make(each) for each in found]
    return Rows(tuple(rows), header.skipped_lines(data, headings + len(found)))
