"""Curves over time as inline SVG: a few lines of text, in the colours of the page, with nothing to load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise

from tierd.text import printable

Points = Sequence[tuple[float, float]]
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 860, 220, 64, 26, 10
COLOURS = ("#2a6fb0", "#c2452d", "#3b8f4a", "#8a5bb5", "#b8860b", "#4a9aa5")
_GAP_SECONDS = 300.0
"""Longer than that without a point, and the line is broken: tierd was not at work."""
_GAP_SHARE = 1 / 200
"""The same of the whole picture, where that is long: points of a week are a quarter of an hour apart."""


def plot(title: str, unit: str, curves: Mapping[str, Points], since: float, until: float,
         marks: Sequence[tuple[float, str]] = ()) -> str:
    """One picture. ``marks`` are moments with what happened then."""
    shown = {name: points for name, points in curves.items() if points}
    gap = max(_GAP_SECONDS, _GAP_SHARE * (until - since))
    top = nice(max((value for points in shown.values() for _, value in points), default=1.0))

    def x(time: float) -> float:
        return LEFT + (time - since) / (until - since) * (WIDTH - LEFT - 10)

    def y(value: float) -> float:
        return TOP + (1 - max(value, 0.0) / top) * (HEIGHT - TOP - BOTTOM)

    parts = [f"<figure><figcaption>{escape(title)}, {escape(unit)}</figcaption>",
             f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">']
    for step in range(5):
        value = top * step / 4
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
                     f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for step in range(6):
        time = since + (until - since) * step / 5
        words, anchor = hour(time, until - since), "end" if step == 5 else "middle"  # the last must not be cut off
        parts.append(f'<text x="{x(time):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{words}</text>')
    for time, words in marks[:200]:
        parts.append(f'<line class="mark" x1="{x(time):.1f}" x2="{x(time):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}">'
                     f"<title>{escape(printable(words))}</title></line>")
    for number, (name, points) in enumerate(shown.items()):
        path = line([(time, x(time), y(value)) for time, value in points], gap)
        colour, words = COLOURS[number % len(COLOURS)], escape(printable(name))
        parts.append(f'<path d="{path}" stroke="{colour}"><title>{words}</title></path>')
    legend = " ".join(f'<span style="color:{COLOURS[n % len(COLOURS)]}">&#9632;</span> {escape(printable(name))}'
                      for n, name in enumerate(shown))
    return "".join(parts) + f"</svg><p>{legend or 'nothing was recorded'}</p></figure>"


def line(points: Sequence[tuple[float, float, float]], gap_seconds: float) -> str:
    """The path of a curve, broken where there is a gap; points are (time, x, y)."""
    if not points:
        return ""
    parts = [f"M{points[0][1]:.1f} {points[0][2]:.1f}h.1"]
    for (before, _, _), (time, x, y) in pairwise(points):
        parts.append(f"{'L' if time - before <= gap_seconds else 'M'}{x:.1f} {y:.1f}")
    return "".join(parts)


def nice(value: float) -> float:
    """The next round number.

    >>> nice(37.0), nice(0.8), nice(0.0), nice(5000)
    (50.0, 1.0, 1.0, 5000.0)
    """
    if value <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(float(f"{power * step:g}") for step in (1, 2, 5, 10) if power * step >= value)


def hour(time: float, span: float) -> str:
    """A moment on the axis."""
    return datetime.fromtimestamp(time, UTC).strftime("%H:%M" if span < 2 * 86400 else "%m-%d %H:%M")
