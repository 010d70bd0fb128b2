"""Directories made below one while it had the default tierd gave it: each was given a copy, and keeps it.

Lustre copies the default of a directory into each new one in it (``lod_dir_striping_create_internal`` in
lustre/lod/lod_object.c; the root's alone is not copied). Taken back from the one above only, it would go on sending
files to flash from all of these, for good.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from lustre.filesystem import Filesystem
from lustre.layout.model import Layout, same_shape
from tierd.sense.paths import join

LONGEST_SECONDS = 60.0
"""So long may be looked for them: names are listed, and only directories are asked about."""
_CLOCKS_DIFFER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Passing:
    """What was passed on: whose it was, and since when."""

    ours: Layout
    before: Layout | None
    """What these directories get, as they would have got it then."""
    since: float
    spared: Collection[str]
    """Directories to which tierd gave a default of their own: each is an act of its own."""


def take_back(filesystem: Filesystem, top: str, passing: Passing, stop: Callable[[], str]) -> str:
    """Put back the earlier default in all that were made below ``top`` since; what is to be said of it, or "".

    One that has another default was given that by somebody, and so were those in it. ``stop`` says why no more may be
    done.
    """
    changed = older = 0
    troubles: list[str] = []
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        try:
            names = filesystem.subdirectories(directory)
        except OSError as error:
            troubles.append(error.strerror or str(error))
            continue
        for name in names:
            if why := stop():
                troubles.append(why)
                return _told(changed, older, troubles)
            place = join(directory, name)
            try:
                found = _one(filesystem, place, passing)
            except FileNotFoundError:
                continue  # removed meanwhile
            except (OSError, ValueError) as error:
                troubles.append(getattr(error, "strerror", None) or str(error))
                continue
            older += found == "older"
            if found == "changed":
                changed += 1
                waiting.append(place)
    return _told(changed, older, troubles)


def _one(filesystem: Filesystem, place: str, passing: Passing) -> str:
    """What became of one directory."""
    present = filesystem.layout(place)
    if present is None or not same_shape(present, passing.ours) or place in passing.spared:
        return "another"
    if filesystem.status(place).mtime < passing.since - _CLOCKS_DIFFER_SECONDS:
        return "older"  # nothing was made in it since, and it was not made itself: it had this default before
    filesystem.set_default_layout(place, passing.before)
    return "changed"


def _told(changed: int, older: int, troubles: list[str]) -> str:
    words = []
    if changed:
        words.append(f"and in {changed} directories made below it meanwhile")
    if older:
        words.append(f"{older} below it had the same default before, and keep it")
    if troubles:
        words.append(f"directories made below it meanwhile may still have it ({troubles[0]}): lfs getstripe -d -r")
    return "; ".join(words)
