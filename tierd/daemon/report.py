"""``tierctl report``: findings, acts and verdicts of a period as lines, and as one HTML page with curves in SVG.

The page loads nothing from anywhere. Its template is ``pages/report.html``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tierd.acts import ORDER_KINDS
from tierd.daemon.answers import ReportAnswer
from tierd.daemon.charts import Axes, round_times
from tierd.daemon.states import verdict_text
from tierd.text import bytes_text, count_of, first_names, quoted

Points = Sequence[tuple[float, float]]
SAMPLE_SECONDS = 60.0
COLOURS = ("#2a6fb0", "#c2452d", "#3b8f4a", "#8a5bb5", "#b8860b", "#4a9aa5")
_GAP_SECONDS = 300.0
"""A curve is broken where points are farther apart, because tierd did not run."""
_GAP_SHARE = 1 / 200
"""For a long period, the limit is this share of it: points of a week are a quarter of an hour apart."""


@dataclass(frozen=True)
class Plot:
    """What the template draws, in the units of the picture."""

    title: str
    unit: str
    curves: Sequence[tuple[str, str, str]]
    """Name, path and colour of each."""
    grid: Sequence[tuple[float, str]]
    times: Sequence[tuple[float, str]]
    marks: Sequence[tuple[float, str]]
    width, height, left, bottom, top = 860, 220, 64, 26, 10


def plot(title: str, unit: str, curves: Mapping[str, Points], since: float, until: float,
         marks: Sequence[tuple[float, str]] = ()) -> Plot:
    """One plot. ``marks`` are times with a description of the event."""
    shown = {name: points for name, points in curves.items() if points}
    gap, span = max(_GAP_SECONDS, _GAP_SHARE * (until - since)), until - since
    axes = Axes.around(since, until, max((value for points in shown.values() for _, value in points), default=0.0))

    def x(time: float) -> float:
        return round(Plot.left + (time - since) / span * (Plot.width - Plot.left - 10), 1)

    def y(value: float) -> float:
        return round(Plot.top + (1 - max(value, 0.0) / axes.top) * (Plot.height - Plot.top - Plot.bottom), 1)

    return Plot(
        title, unit, curves=[(name, curve_path([(time, x(time), y(value)) for time, value in points], gap),
                              COLOURS[number % len(COLOURS)]) for number, (name, points) in enumerate(shown.items())],
        grid=[(y(value), f"{value:g}") for value in axes.steps],
        times=[(x(time), name) for time, name in round_times(since, until)],
        marks=[(x(time), words) for time, words in marks[:200]])


def curve_path(points: Sequence[tuple[float, float, float]], gap_seconds: float) -> str:
    """The path of a curve, interrupted at gaps. Points are (time, x, y)."""
    if not points:
        return ""
    parts = [f"M{points[0][1]:.1f} {points[0][2]:.1f}h.1"]
    for (before, _, _), (time, x, y) in pairwise(points):
        parts.append(f"{'L' if time - before <= gap_seconds else 'M'}{x:.1f} {y:.1f}")
    return "".join(parts)


def report_page(answer: ReportAnswer) -> str:
    from tierd.daemon.page import day_text, environment  # noqa: PLC0415 -- the lines need no template

    samples, until, begun = answer.samples, answer.until, drawn_since(answer)
    streams, pools = ({name.removeprefix(of): [(time, scale * value) for time, value in points]
                       for name, points in samples.items() if name.startswith(of)}
                      for of, scale in (("victim ", 1e-6), ("pool ", 100)))
    users = {case.finding: [f"{job}: {answer.users[job]}" for job in (case.aggressor, case.victim)
                            if job in answer.users] for case in answer.cases}
    return environment().get_template("report.html").render(
        r=answer, state=operating_state(answer), summary=summary_sentence(answer), first=first_known(answer),
        plots_begin=begun,
        streams=plot("Throughput; dashed lines: a default layout was set, or would be set in a dry run", "MB/s",
                     streams, begun, until,
                     marks=[(e.time, f"{e.kind} {quoted(e.place)}: {e.outcome}") for e in answer.default_layouts]),
        activity=plot("Findings that held; dashed lines: a finding began", "number",
                      {"findings": samples.get("findings", [])}, begun, until,
                      marks=[(case.since, case.sentence) for case in answer.cases if case.victim]),
        queue=plot("Files in the queue", "number", {"waiting moves": samples.get("waiting moves", [])}, begun, until),
        pools=plot("Pools in use", "%", pools, begun, until),
        cases=[(case.name, day_text(case.since), case.kind, case.sentence, ", ".join(users[case.finding]),
                first_names(case.directories, 16), case.result_text) for case in answer.cases],
        acts=[(e.id, day_text(e.time), e.outcome, f"{e.kind} {quoted(e.place)}", e.detail or e.after or "", e.reason)
              for e in answer.acts])


def first_known(answer: ReportAnswer) -> float:
    """Time of the first point of any curve; the beginning of the period if there are no points."""
    return min((float(points[0][0]) for points in answer.samples.values() if points), default=answer.since)


def drawn_since(answer: ReportAnswer) -> float:
    """Beginning of the plots: shortly before the first point, so that an hour of data fills a plot of a week."""
    since, first = answer.since, first_known(answer)
    if first - since <= 2 * SAMPLE_SECONDS:
        return since
    return max(since, first - (answer.until - first) / 20)


def operating_state(answer: ReportAnswer) -> str:
    status = answer.status
    dry = " Dry run: nothing was changed." if status.dry_run else ""
    return f"Mode {status.mode}.{dry}" + (f" Paused: {status.paused}." if status.paused else "")


def summary_sentence(answer: ReportAnswer) -> str:
    """Findings, acts and verdicts of the period in a sentence."""
    found = ", ".join(f"{count} {kind}" for kind, count in answer.kinds.items()) or "nothing found"
    judged = ", ".join(f"{count} {verdict_text(name)}" for name, count in answer.verdicts.items())
    after = f"; verdicts: {judged}" if judged else ""
    moved = f"{count_of(answer.all_acts, 'act')}, {count_of(answer.files_moved, 'file')} moved"
    return f"{found}; {moved}, {bytes_text(answer.bytes_moved)}{after}."


MAX_LINES = 20
"""Findings that ``tierctl report`` prints."""


def report_lines(answer: ReportAnswer, time_text: Callable[[float], str]) -> list[str]:
    """The report in short: the sums of the period, and the last findings that are no advice, each with its verdict."""
    acted = [case for case in answer.cases if case.state or case.victim]
    lines = [f"{time_text(answer.since)} to {time_text(answer.until)}. {operating_state(answer)}",
             summary_sentence(answer)]
    for case in acted[-MAX_LINES:]:
        lines += [f"{case.name}  {time_text(case.since)}  {case.kind}: {case.sentence}", f"    {case.result_text}"]
    left = sum(count for kind, count in answer.kinds.items() if kind not in ORDER_KINDS) - min(len(acted), MAX_LINES)
    return [*lines, f"and {count_of(left, 'finding')} more"] if left else lines
