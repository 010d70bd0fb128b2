r"""The running Lustre release: ``version``. 2.10 prints ``lustre:`` before it.

>>> parse(b"2.17.57_62_gc881f8e_dirty\n").release, parse(b"lustre: 2.10.8\n").release, parse(b"2.1")
(b'2.17.57_62_gc881f8e_dirty', b'2.10.8', Version(release=None, skipped=1))
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lustre.formats import header

_VERSION = re.compile(rb"\s*+(?:lustre: )?([0-9][!-~]{0,100}+)[ \t]*+\n\s*+")


@dataclass(frozen=True, slots=True)
class Version:
    """The release; None when the file holds other text."""

    release: bytes | None
    skipped: int


def parse(data: bytes) -> Version:
    match = _VERSION.fullmatch(data)
    return Version(None, header.skipped_lines(data, 0)) if match is None else Version(match[1], 0)
