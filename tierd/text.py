"""Words for people: names that may hold anything, made safe for a terminal and a log."""

from __future__ import annotations

import re
from collections.abc import Iterable


def quoted(path: str) -> str:
    r"""A path as one word that cannot disturb a terminal.

    >>> print(quoted("/proj/run"), quoted("/proj/two words"), quoted("/proj/\x1b[2J\n"))
    /proj/run '/proj/two words' '/proj/\x1b[2J\n'
    """
    return path if path.isprintable() and " " not in path and path else ascii(path)


def some(names: Iterable[str], most: int = 3) -> str:
    """Names in a sentence, the many of them as a number.

    >>> some(["n1", "n2"]), some(f"n{n}" for n in range(40))
    ('n1, n2', 'n0, n1, n2 and 37 more')
    """
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(map(quoted, every[:most])) + more


def percent(share: float) -> str:
    """A share for people.

    >>> percent(0.876)
    '88 %'
    """
    return f"{100 * share:.0f} %"


def without_figures(sentence: str) -> str:
    """The sentence with its numbers blotted out: what is left is what it says.

    >>> without_figures("pool 'flash' has 1.2 GB free") == without_figures("pool 'flash' has 0.9 GB free")
    True
    """
    return re.sub(r"\d+(\.\d+)?", "#", sentence)
