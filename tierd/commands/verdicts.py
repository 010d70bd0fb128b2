"""Verdicts in words, the same in all commands."""

from __future__ import annotations

WORDS = {
    "": "being judged", "helped": "it helped, and was kept", "did-not-help": "it did not help, and was taken back",
    "harmed-others": "others paid for it, and it was taken back",
    "taken-back": "it was taken back by hand",
    "cannot-tell": "it cannot be judged: a job has gone, or the figures are in doubt",
}


def verdict(name: str, *, judged: bool = True) -> str:
    """A verdict, for people.

    >>> verdict("helped"), verdict("", judged=True), verdict("", judged=False)
    ('it helped, and was kept', 'nothing to judge', 'being judged')
    """
    return "nothing to judge" if judged and not name else WORDS.get(name, name)
