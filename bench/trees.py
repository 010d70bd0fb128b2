"""Made-up parameter trees of any size, whose counters move on demand, in the form of Lustre 2.17.

For load only: the values mean nothing. The trees hold what the exporter reads, and little else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

FS = "bench"
BORN = 1763600000


def times(step: int, colon: str = "", indent: str = "") -> str:
    """The lines above counters; they move at every reading."""
    return (
        f"{indent}snapshot_time{colon}   {BORN + step}.708752159 secs.nsecs\n"
        f"{indent}start_time{colon}      {BORN}.183879238 secs.nsecs\n"
        f"{indent}elapsed_time{colon}    {step}.568280697 secs.nsecs\n"
    )


@dataclass(slots=True)
class Tree:
    """A node's parameters below a folder."""

    root: Path
    made: set[Path] = field(default_factory=set)

    def put(self, path: str, text: str) -> None:
        """Write one parameter."""
        place = self.root / path
        if place.parent not in self.made:
            place.parent.mkdir(parents=True, exist_ok=True)
            self.made.add(place.parent)
        place.write_text(text)
