"""Words for people: names that may hold anything, made safe for a terminal and a log."""

from __future__ import annotations


def quoted(path: str) -> str:
    r"""A path as one word that cannot disturb a terminal.

    >>> print(quoted("/proj/run"), quoted("/proj/two words"), quoted("/proj/\x1b[2J\n"))
    /proj/run '/proj/two words' '/proj/\x1b[2J\n'
    """
    return path if path.isprintable() and " " not in path and path else ascii(path)
