"""``tierctl report``: findings, acts and verdicts of a period as lines, and as one HTML page with curves in SVG.

The page loads nothing from anywhere. Its template is ``pages/report.html``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tierd.acts import ORDER_KINDS
from tierd.cli import client
from tierd.daemon.answers import ReportAnswer
from tierd.daemon.charts import SAMPLE_SECONDS, Axes, Chart, Curve, Mark, Points, path_of, round_times
from tierd.daemon.client import ControlError, ask
from tierd.daemon.states import verdict_text
from tierd.text import bytes_text, count_of, first_names, printable, quoted

COLOURS = ("#2a6fb0", "#c2452d", "#3b8f4a", "#8a5bb5", "#b8860b", "#4a9aa5")
_GAP_SECONDS = 300.0
"""A curve is broken where points are farther apart, because tierd did not run."""
_GAP_SHARE = 1 / 200
"""For a long period, the limit is this share of it: points of a week are a quarter of an hour apart."""

def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = client.add_command(
        commands, "report", "show findings, acts and their effect in a period", run,
        "Print the findings of a period with their verdicts, from the journal. With --output, also write one HTML file "
        "with plots, findings, acts and verdicts. The file loads nothing from the network.")
    report.add_argument("--since", default="1d", metavar="WHEN",
                        help="start: 6h, 7d, or 2026-11-20T08:00 in local time (default: %(default)s)")
    report.add_argument("--until", default="", metavar="WHEN",
                        help="end: 6h, 7d, or 2026-11-20T08:00 in local time (default: now)")
    report.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="write the whole report to this HTML file; - writes it to standard output")


def run(chosen: argparse.Namespace) -> int:
    """Request the data, print the lines, and write the page if a file is named."""
    now = datetime.now(UTC).timestamp()
    try:
        until = client.moment(chosen.until, now) if chosen.until else now
        since = client.moment(chosen.since, until)
        if since >= until:
            raise ValueError(f"--since {chosen.since} is not before --until")
        with client.working("report"):
            answer = ask(client.socket_of(chosen), {"request": "report", "since": since, "until": until})
            report = ReportAnswer.from_json(answer)
    except (ControlError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if chosen.json:
        print(json.dumps(answer, indent=1))
        return 0
    if str(chosen.output) == "-":
        print(report_page(report))
        return 0
    last = "tierctl report -o FILE writes the whole report as an HTML file"
    if chosen.output is not None:
        try:
            chosen.output.write_text(report_page(report), encoding="utf-8")
        except OSError as error:
            print(f"{chosen.output}: {error.strerror}", file=sys.stderr)
            return 1
        last = f"{chosen.output}: the whole report"
    print("\n".join(map(printable, [*report_lines(report), last])))
    return 0


def plot(curves: Mapping[str, Points], since: float, until: float, marks: Sequence[tuple[float, str]] = ()) -> Chart:
    """One plot, with the colours of its curves. ``marks`` are times with a description of the event."""
    shown = {name: points for name, points in curves.items() if points}
    gap = max(_GAP_SECONDS, _GAP_SHARE * (until - since))
    axes = Axes.around(since, until, max((value for points in shown.values() for _, value in points), default=0.0))
    return Chart(
        tuple(Curve(name, COLOURS[number % len(COLOURS)], path_of(points, axes, gap) + "h.1" * (len(points) == 1), "")
              for number, (name, points) in enumerate(shown.items())), since, until,
        scale=tuple(Mark(axes.y(value), f"{value:g}") for value in axes.steps),
        times=tuple(Mark(axes.x(time), name) for time, name in round_times(since, until)),
        marks=tuple(Mark(axes.x(time), words) for time, words in marks[:200]))


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
        streams=plot(streams, begun, until,
                     [(e.time, f"{e.kind} {quoted(e.place)}: {e.outcome}") for e in answer.default_layouts]),
        activity=plot({"findings": samples.get("findings", [])}, begun, until,
                      [(case.since, case.sentence) for case in answer.cases if case.victim]),
        queue=plot({"waiting moves": samples.get("waiting moves", [])}, begun, until),
        pools=plot(pools, begun, until),
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


def report_lines(answer: ReportAnswer, time_text: Callable[[float], str] = client.time_text) -> list[str]:
    """The report in short: the sums of the period, and the last findings that are no advice, each with its verdict."""
    acted = [case for case in answer.cases if case.state or case.victim]
    lines = [f"{time_text(answer.since)} to {time_text(answer.until)}. {operating_state(answer)}",
             summary_sentence(answer)]
    for case in acted[-MAX_LINES:]:
        lines += [f"{case.name}  {time_text(case.since)}  {case.kind}: {case.sentence}",
                  f"    {case.result_text}"]
    left = sum(count for kind, count in answer.kinds.items() if kind not in ORDER_KINDS) - min(len(acted), MAX_LINES)
    return [*lines, f"and {count_of(left, 'finding')} more"] if left else lines
