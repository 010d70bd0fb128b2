"""Where in a scenario file a mistake stands."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_ENTRY = re.compile(r"(job|event) (\d+)")
_TABLE = re.compile(r"(cluster(?:\.\w+)?|variant [^:]+|\w+)")
_KEY = re.compile(r"(?: has no |\.)([\w-]+)[^.]*?(?::|$|,)")


def located(text: str, reason: str) -> str:
    r"""A reason with the line it is about; the reason as it is when no line can be told.

    >>> text = "seconds = 10\n[[job]]\nkind = 'ls'\n[[job]]\nkind = 'ls'\ncolour = 1\n"
    >>> located(text, "job 2: ls has no colour"), located(text, "job 1: kind 'ls'"), located(text, "seconds: too short")
    ('line 6: job 2: ls has no colour', "line 2: job 1: kind 'ls'", 'line 1: seconds: too short')
    """
    lines = text.splitlines()
    entry, table = _ENTRY.match(reason), _TABLE.match(reason)
    if entry:
        begin = _header(lines, entry[1], int(entry[2]))
    elif table is not None:
        name = table[1].replace("variant ", "variant.")
        begin = _header(lines, name, 1) or _header(lines, name.rpartition(".")[0], 1)
    else:
        begin = None
    keys = [*_KEY.findall(reason), table[1].rpartition(".")[2] if table is not None else ""]
    if begin is None:
        number = _with_key(lines, 0, table[1] if table is not None else "")
        return f"line {number}: {reason}" if number is not None else reason
    found = [number for key in keys if (number := _with_key(lines, begin, key)) is not None]
    return f"line {found[0] if found else begin}: {reason}"


def _header(lines: list[str], name: str, which: int) -> int | None:
    """The line of the nth table of a name, or of the first one below it."""
    for exact in (True, False):
        seen = 0
        for number, line in enumerate(lines, start=1):
            header = _HEADER.match(line)
            if header and (header[2] == name or (not exact and header[2].startswith(f"{name}."))):
                seen += 1
                if seen == which:
                    return number
    return None


def _with_key(lines: list[str], begin: int, key: str) -> int | None:
    """The line of a key in the table that begins there."""
    for number in range(begin, len(lines)):
        if begin and _HEADER.match(lines[number]):
            return None
        if re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", lines[number]):
            return number + 1
    return None
