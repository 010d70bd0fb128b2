"""Short names for why a plan was refused: few and fixed, as labels of a metric must be. The log has the sentence."""

from __future__ import annotations

WORDS: tuple[tuple[str, str], ...] = (
    ("no changelog says", "no-changelog"),
    ("path could not be found", "no-path"),
    ("root of the file system", "root-directory"),
    ("does not exist or has no targets", "no-pool"),
    ("default layout could not be read", "no-layout"),
    ("GB free, and the job fills", "no-room"),
    ("not known", "sizes-unknown"),
    ("not small files", "not-small"),
    ("are not small", "not-small"),
    ("would split", "sizes-mixed"),
)
"""A part of the sentence, and the name. The first that fits counts."""

NAMES = (*dict.fromkeys(short for _, short in WORDS), "other")


def name(refusal: str) -> str:
    """The short name of a refusal.

    >>> name("/proj/ingest: pool 'flash' has 0.1 GB free, and the job fills 20.0 MB/s")
    'no-room'
    >>> name("/proj/ingest: a reason that is new")
    'other'
    """
    return next((short for words, short in WORDS if words in refusal), "other")
