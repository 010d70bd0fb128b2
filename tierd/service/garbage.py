"""How often Python looks for objects that hold each other and nobody else does.

It does so after every 700 objects that are new, and through all there are whenever they have become a quarter more. The
daemon holds a million objects for minutes, and makes a hundred thousand in each cycle: more time went into the search
than into all of the rest, and there is hardly anything to be found.
"""

from __future__ import annotations

import gc

NEW_OBJECTS = 200_000
ROUNDS = 10


def look_rarely() -> None:
    """Once in so many new objects; and never through what is there already, which are modules and settings."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, ROUNDS, ROUNDS)
