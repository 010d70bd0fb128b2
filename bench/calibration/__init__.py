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
    theirs: float
    ours: float
    remark: str = ""

    @property
    def ratio(self) -> float:
        """Model over theirs."""
        return self.ours / self.theirs if self.theirs else float("nan")


def markdown(rows: Iterable[Row], theirs: str, digits: int = 2) -> str:
    """The table; ``theirs`` names the source's column."""
    text = f"| | {theirs} | model | model / {theirs} | |\n|---|---:|---:|---:|---|\n"
    for row in rows:
        cells = (f"{row.theirs:.{digits}f}", f"{row.ours:.{digits}f}", f"{row.ratio:.2f}")
        text += f"| {row.what} | {' | '.join(cells)} | {row.remark} |\n".replace(" nan ", " - ")
    return text
