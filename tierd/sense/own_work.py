"""Our own moves in job statistics are not news; somebody else's under the same name are, and then there are two movers.

``lfs.0`` is anybody's ``lfs migrate`` who is root. The journal knows what we moved: what a job id of ours read and
wrote beyond that is not ours. While we move as well, somebody else shows only by more than ours can have come to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from tierd.model import Window

BEFORE_SECONDS = 60.0
"""A move that ended so long before a window may still be in it: clocks differ, and caches are written late."""
PASSES = 4
"""A move reads a file, writes it and reads it back; some of that may be done again."""
FILE_BYTES = 256 << 10
"""More, for each file: transfers are of whole pages."""
LEAST_BYTES = 4 << 20
"""Less in a window is nobody's move: root also runs ``lfs`` on a file or two by hand."""
QUIET_SECONDS = 300.0
"""So long nothing more of another mover has to be seen until it counts as gone."""

Moved = Callable[[float], tuple[int, int]]
"""Files and bytes we moved, or took back, since a time: the journal knows, over a restart too."""


@dataclass(frozen=True, slots=True)
class Told:
    """Whose what is called ours was."""

    own_jobs: Collection[str]
    """Jobs to leave out of the window; none where it was somebody else's."""
    trouble: str = ""
    """Who else moves files, in words; "" for nobody."""


class OwnWork:
    """Looks at one window after the other."""

    def __init__(self, jobs: Iterable[str], moved: Moved) -> None:
        self._jobs = frozenset(jobs)
        self._moved = moved
        self._trouble = ""
        self._seen_at = float("-inf")

    def __call__(self, window: Window) -> Told:
        """Of one window. Loads without bytes are ours: all commands of ``lfs`` are called so, and most move nothing."""
        ours = [load for (_, job), load in window.loads.items() if job in self._jobs]
        done_bytes = sum(load.moved_bytes for load in ours)
        theirs = done_bytes > LEAST_BYTES and self._beyond(done_bytes, window)
        if theirs:
            self._seen_at = window.end
            busiest = max(ours, key=lambda load: load.moved_bytes)
            self._trouble = self._trouble or (
                f"another mover: {busiest.job} read and wrote {done_bytes / 1e6:.0f} MB in {window.seconds:.0f} s, "
                "more than tierd can have; nothing is moved and no act begun until that has been over for "
                f"{QUIET_SECONDS / 60:.0f} minutes")
        elif not 0 <= window.end - self._seen_at < QUIET_SECONDS:
            self._trouble = ""
        return Told(frozenset() if theirs else self._jobs, self._trouble)

    def _beyond(self, done_bytes: float, window: Window) -> bool:
        files, size_bytes = self._moved(window.start - BEFORE_SECONDS)
        return done_bytes > LEAST_BYTES + PASSES * size_bytes + FILE_BYTES * files
