"""The simulator against published and recorded results; ``python -m bench.calibration`` writes the page.

:class:`Row` is one effect, :func:`markdown` a table of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One effect: as its source states it, and as the model has it."""

    what: str
    source: str
    stated: str
    model: str
    used: bool = False
    """Whether a parameter of the model was chosen by this row. All other rows are predictions."""


def change(*ratios: float) -> str:
    """A ratio, or the range of several, as sources state effects.

    >>> change(1.07), change(0.78), change(1.071, 1.12), change(3.5, 4.5)
    ('+7%', '-22%', '+7% to +12%', '3.5 to 4.5 times')
    """
    if max(ratios) < 3:
        return between([f"{round(ratio - 1, 2) + 0.0:+.0%}" for ratio in (min(ratios), max(ratios))])
    return f"{between([f'{ratio:.1f}' for ratio in (min(ratios), max(ratios))])} times"


def share(*values: float) -> str:
    """A share, or the range of several.

    >>> share(0.088), share(0.3, 0.2)
    ('9%', '20% to 30%')
    """
    return between([f"{value:.0%}" for value in (min(values), max(values))])


def number(*values: float) -> str:
    return between([f"{value:.3g}" for value in (min(values), max(values))])


def between(ends: list[str]) -> str:
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def markdown(rows: Iterable[Row]) -> str:
    text = "| effect | source | stated | here | row |\n|---|---|---:|---:|---|\n"
    for row in rows:
        text += (f"| {row.what} | {row.source} | {row.stated} | {row.model} | "
                 f"{'**used**' if row.used else 'prediction'} |\n")
    return text
