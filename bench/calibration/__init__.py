"""The simulator against published and recorded results; ``python -m bench.calibration`` writes the report.

:class:`Row` is one figure of a comparison, :func:`markdown` a table of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: as published or recorded, and as the model has it."""

    what: str
    source: float
    model: float
    remark: str = ""

    @property
    def ratio(self) -> float:
        """Ratio of the model to the source."""
        return self.model / self.source if self.source else float("nan")


def markdown(rows: Iterable[Row], source: str, digits: int = 2) -> str:
    """Format a table of rows. ``source`` is the heading of its column."""
    text = f"| | {source} | model | model / {source} | |\n|---|---:|---:|---:|---|\n"
    for row in rows:
        cells = (f"{row.source:.{digits}f}", f"{row.model:.{digits}f}", f"{row.ratio:.2f}")
        text += f"| {row.what} | {' | '.join(cells)} | {row.remark} |\n".replace(" nan ", " - ")
    return text
