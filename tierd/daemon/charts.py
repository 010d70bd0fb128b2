"""Charts of the pages: curves with a scale and times, marks of events, and the values for the cursor.

Coordinates are percent of width and height, so that a chart fits any screen without a style of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil, floor, log10

from tierd.daemon import answers
from tierd.text import bytes_text

Points = Sequence[Sequence[float]]
"""Time and one value for each curve, oldest first."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An event on a chart, or a line of its grid."""

    x: float
    """Percent: of the width, or of the height for the scale of values."""
    name: str
    kind: str = ""
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a chart."""

    name: str
    css: str
    path: str
    last: str
    """Its newest value in words."""


@dataclass(frozen=True, slots=True)
class Chart:
    """What a template draws."""

    curves: tuple[Curve, ...]
    begin: float
    end: float
    scale: tuple[Mark, ...]
    times: tuple[Mark, ...]
    data: str = ""
    """For the script: unit, begin and end, names of the curves, and the points, as JSON."""
    usual: float | None = None
    """Height of the line of the usual throughput."""
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Axes:
    """Time and values of a chart, and where they are."""

    begin: float
    end: float
    top: float
    steps: tuple[float, ...] = ()
    """Values of the lines of the grid."""

    @classmethod
    def around(cls, begin: float, end: float, highest: float) -> Axes:
        """Axes for values up to ``highest``: the scale ends at a round value."""
        step = round_up(highest / 4)
        count = max(1, ceil(highest / step))
        return cls(begin, max(end, begin + 1.0), step * count, tuple(step * each for each in range(count + 1)))

    def x(self, time: float) -> float:
        return round(100 * min(1.0, max(0.0, (time - self.begin) / (self.end - self.begin))), 2)

    def y(self, value: float) -> float:
        return round(100 * (1 - min(max(value, 0.0) / self.top, 1.0)), 2)


def round_up(value: float) -> float:
    """The next round number.

    >>> round_up(37.0), round_up(0.8), round_up(0.0), round_up(5000)
    (50.0, 1.0, 1.0, 5000.0)
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(float(f"{power * step:g}") for step in (1, 2, 2.5, 5, 10) if power * step >= value)


TIMES = 3
"""Parts of the time of a chart, each with its begin and end: they fit a phone."""


def times_of(axes: Axes) -> tuple[Mark, ...]:
    """Times with their names, in UTC.

    >>> [mark.name for mark in times_of(Axes(1_795_000_000.0, 1_795_003_600.0, 1.0))]
    ['11:06', '11:26', '11:46', '12:06']
    """
    span = axes.end - axes.begin
    form = "%H:%M:%S" if span < 600 else "%H:%M" if span <= 86400 else "%b %d, %H:%M"
    return tuple(Mark(round(100 * part / TIMES, 2),
                      datetime.fromtimestamp(axes.begin + span * part / TIMES, UTC).strftime(form))
                 for part in range(TIMES + 1))


def value_text(value: float, unit: str) -> str:
    """A value of a chart.

    >>> value_text(44e6, "B/s"), value_text(0.25, "/s"), value_text(12_345.0, "/s")
    ('44.0 MB/s', '0.2/s', '12345/s')
    """
    return f"{bytes_text(value)}/s" if unit == "B/s" else f"{value:.{1 if 0 < value < 10 else 0}f}{unit}"


def path_of(points: Points, axes: Axes, gap_seconds: float) -> str:
    """The path of a curve of times and values, interrupted where points are further apart."""
    path, before = [], float("-inf")
    for time, value in points:
        path.append(f"{'L' if time - before <= gap_seconds else 'M'}{axes.x(time):g} {axes.y(value):g}")
        before = time
    return "".join(path)


def drawn(points: Points, names: Sequence[tuple[str, str]], unit: str, axes: Axes, gap_seconds: float) -> Chart:
    """A chart with a curve for each name and CSS class."""
    curves = [Curve(name, css, path_of([(point[0], point[place]) for point in points], axes, gap_seconds),
                    value_text(points[-1][place], unit) if points else "")
              for place, (name, css) in enumerate(names, 1)]
    data = json.dumps({"unit": unit, "begin": round(axes.begin, 1), "end": round(axes.end, 1), "top": axes.top,
                       "names": [name for name, _ in names],
                       "points": [[round(point[0] - axes.begin, 1), *(float(f"{value:.4g}") for value in point[1:])]
                                  for point in points]}, separators=(",", ":"))
    return Chart(tuple(curves), axes.begin, axes.end, data=data,
                 scale=tuple(Mark(axes.y(value), value_text(value, unit)) for value in axes.steps),
                 times=times_of(axes))


# Of a job or target

THROUGHPUT = ("read", "read"), ("written", "write")
OPERATIONS = ("operations", "ops"), ("metadata operations", "meta")


def rate_charts(rates: answers.RatesAnswer) -> list[tuple[str, Chart]]:
    """Throughput and operations of a job or target, with titles."""
    found = []
    for title, names, first, unit in (("Throughput", THROUGHPUT, 1, "B/s"), ("Operations", OPERATIONS, 3, "/s")):
        points = [(point[0], point[first], point[first + 1]) for point in rates.points]
        axes = Axes.around(rates.since, rates.until, max((max(point[1:]) for point in points), default=0.0))
        found.append((title, drawn(points, names, unit, axes, 1.6 * rates.step_seconds)))
    return found


# Of a case

_GAP_SECONDS = 60.0


def case_chart(case: answers.Case, now: float) -> Chart | None:
    """The curve of a case from some minutes before the onset; None if it has fewer than two points."""
    act = "dry run of the acts" if case.dry_run else "layout set" if case.defaults or not case.moves else "acted"
    begin = (case.onset or case.acted_at or case.since) - 240.0
    points = [(time, rate) for time, rate in case.curve if time >= begin] or list(case.curve)
    if len(points) < 2:
        return None
    axes = Axes.around(points[0][0], points[-1][0], max(case.usual or 0.0, *(rate for _, rate in points), 1.0))
    chart = drawn(points, (("throughput", "write"),), "B/s", axes, max(_GAP_SECONDS, (axes.end - axes.begin) / 60))
    events = (("aggressor started", "onset", case.onset), ("found", "found", case.since), (act, "act", case.acted_at),
              ("verdict", "verdict", case.judged_at))
    marks = tuple(Mark(axes.x(time), name, kind, time) for name, kind, time in events
                  if time and axes.begin <= time <= now)
    return replace(chart, usual=axes.y(case.usual) if case.usual else None, marks=marks)
