"""The page of ``tierctl report``: findings, acts and verdicts of a period, and curves as inline SVG.

The page loads nothing from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise

from tierd.acts import Verdict
from tierd.daemon.answers import Case, ReportAnswer
from tierd.daemon.states import FOUND, state_text, verdict_text
from tierd.text import bytes_text, count_of, first_names, printable, quoted, rate_text

Points = Sequence[tuple[float, float]]
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 860, 220, 64, 26, 10
COLOURS = ("#2a6fb0", "#c2452d", "#3b8f4a", "#8a5bb5", "#b8860b", "#4a9aa5")
_GAP_SECONDS = 300.0
"""A curve is broken where points are farther apart, because tierd did not run."""
_GAP_SHARE = 1 / 200
"""For a long period, the limit is this share of it: points of a week are a quarter of an hour apart."""


def plot(title: str, unit: str, curves: Mapping[str, Points], since: float, until: float,
         marks: Sequence[tuple[float, str]] = ()) -> str:
    """One plot as SVG. ``marks`` are times with a description of the event."""
    shown = {name: points for name, points in curves.items() if points}
    gap = max(_GAP_SECONDS, _GAP_SHARE * (until - since))
    top = round_up(max((value for points in shown.values() for _, value in points), default=1.0))

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
        words, anchor = axis_time(time, until - since), "end" if step == 5 else "middle"  # inside the plot
        parts.append(f'<text x="{x(time):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{words}</text>')
    for time, words in marks[:200]:
        parts.append(f'<line class="mark" x1="{x(time):.1f}" x2="{x(time):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}">'
                     f"<title>{escape(printable(words))}</title></line>")
    for number, (name, points) in enumerate(shown.items()):
        path = curve_path([(time, x(time), y(value)) for time, value in points], gap)
        colour, words = COLOURS[number % len(COLOURS)], escape(printable(name))
        parts.append(f'<path d="{path}" stroke="{colour}"><title>{words}</title></path>')
    legend = " ".join(f'<span style="color:{COLOURS[n % len(COLOURS)]}">&#9632;</span> {escape(printable(name))}'
                      for n, name in enumerate(shown))
    return "".join(parts) + f"</svg><p>{legend or 'nothing was recorded'}</p></figure>"


def curve_path(points: Sequence[tuple[float, float, float]], gap_seconds: float) -> str:
    """The path of a curve, interrupted at gaps. Points are (time, x, y)."""
    if not points:
        return ""
    parts = [f"M{points[0][1]:.1f} {points[0][2]:.1f}h.1"]
    for (before, _, _), (time, x, y) in pairwise(points):
        parts.append(f"{'L' if time - before <= gap_seconds else 'M'}{x:.1f} {y:.1f}")
    return "".join(parts)


def round_up(value: float) -> float:
    """The next round number.

    >>> round_up(37.0), round_up(0.8), round_up(0.0), round_up(5000)
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


def axis_time(time: float, span: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%H:%M" if span < 2 * 86400 else "%m-%d %H:%M")


_STYLE = """
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;padding:1em;max-width:60em;
overflow-wrap:anywhere}h1{font-size:1.5em}h2{font-size:1.15em;margin:1.8em 0 .4em}
div{overflow-x:auto}table{border-collapse:collapse;width:100%}td{min-width:5em}
th,td:nth-child(-n+3){white-space:nowrap;overflow-wrap:normal;min-width:0}
th,td{padding:.3em .8em .3em 0;text-align:left;border-bottom:1px solid #8884;vertical-align:top}
figure{margin:1em 0}figcaption{font-weight:600}svg{width:100%;height:auto}
svg text{font-size:12px;fill:currentColor;opacity:.8}svg path{fill:none;stroke-width:1.6}
.grid{stroke:currentColor;opacity:.15}.mark{stroke:#c2452d;opacity:.45;stroke-dasharray:3 3}.big{font-size:1.25em}"""

def report_page(answer: ReportAnswer) -> str:
    since, until = answer.since, answer.until
    samples = answer.samples
    marks = [(f.time, f.sentence) for f in answer.findings if f.victim]
    acted = [(e.time, f"{e.kind} {quoted(e.place)}: {e.outcome}") for e in answer.default_layouts]
    streams = {name.partition(" ")[2]: [(t, v / 1e6) for t, v in points]
               for name, points in samples.items() if name.startswith("victim ")}
    pools = {name.partition(" ")[2]: [(t, 100 * v) for t, v in points]
             for name, points in samples.items() if name.startswith("pool ")}
    begun = drawn_since(answer)
    missing = unknown_before(answer) + removed_before(answer)
    body = [
        f"<h1>tierd on {escape(answer.mount)}</h1>",
        f"<p>{utc_time(since)} to {utc_time(until)}, UTC. {escape(printable(operating_state(answer)))}{missing}</p>",
        f'<p class="big">{escape(printable(summary_sentence(answer)))}</p>',
        "<h2>Cases</h2>", findings_table(answer),
        "<h2>Streams that were slowed</h2>",
        plot("Throughput; dashed lines: a default layout was set, or would be set in a dry run", "MB/s", streams, begun,
             until, marks=acted),
        "<h2>Activity</h2>",
        plot("Findings that held; dashed lines: a finding began", "number",
             {"findings": samples.get("findings", [])}, begun, until, marks=marks),
        plot("Files in the queue", "number", {"waiting moves": samples.get("waiting moves", [])}, begun, until),
        plot("Pools in use", "%", pools, begun, until),
        "<h2>Acts</h2>", acts_table(answer),
    ]
    head = (f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>tierd report</title><style>{_STYLE}</style>")
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def first_known(answer: ReportAnswer) -> float:
    """Time of the first point of any curve; the beginning of the period if there are no points."""
    return min((float(points[0][0]) for points in answer.samples.values() if points), default=answer.since)


def drawn_since(answer: ReportAnswer) -> float:
    """Beginning of the plots: shortly before the first point, so that an hour of data fills a plot of a week."""
    since, first = answer.since, first_known(answer)
    if first - since <= 2 * SAMPLE_SECONDS:
        return since
    return max(since, first - (answer.until - first) / 20)


def removed_before(answer: ReportAnswer) -> str:
    """A sentence if the journal no longer has all acts and findings of the period; otherwise ""."""
    begins = answer.complete_since
    if not answer.removed_acts or begins is None or begins <= answer.since:
        return ""
    return f" The journal has single findings and acts since {utc_time(begins)}, and daily sums of earlier ones."


def unknown_before(answer: ReportAnswer) -> str:
    """A sentence if the plots begin later than the period; otherwise ""."""
    if drawn_since(answer) <= answer.since:
        return ""
    return f" Nothing was recorded before {utc_time(first_known(answer))}, and the plots begin there."


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


def findings_table(answer: ReportAnswer) -> str:
    results = results_of(answer)
    rows: list[tuple[str, ...]] = []
    for finding in answer.findings:
        where = first_names(finding.directories, 16)
        users = ", ".join(f"{job}: {answer.users[job]}" for job in (finding.aggressor, finding.victim)
                          if job in answer.users)
        rows.append(
            (f"F{finding.id}", utc_time(finding.time), finding.kind, finding.sentence, users, where,
             results.get(finding.id, ""))
        )
    return html_table(("No.", "When", "Kind", "What", "Users", "Where", "State or verdict"), rows,
                      sum(answer.kinds.values()))


MAX_LINES = 20
"""Findings that ``tierctl report`` prints."""


def report_lines(answer: ReportAnswer, time_text: Callable[[float], str]) -> list[str]:
    """The report in short: the sums of the period, and the last findings that are no advice, each with its verdict."""
    results = results_of(answer)
    acted = [found for found in answer.findings if found.id in results or found.victim]
    lines = [f"{time_text(answer.since)} to {time_text(answer.until)}. {operating_state(answer)}",
             summary_sentence(answer)]
    for found in acted[-MAX_LINES:]:
        lines += [f"F{found.id}  {time_text(found.time)}  {found.kind}: {found.sentence}",
                  f"    {results.get(found.id) or 'no verdict'}"]
    left = sum(answer.kinds.values()) - min(len(acted), MAX_LINES)
    return [*lines, f"and {count_of(left, 'finding')} more"] if left else lines


def results_of(answer: ReportAnswer) -> dict[int, str]:
    """State or verdict of each finding that has one. An undo by hand counts more than the verdict before it."""
    cases = {case.finding: case for case in answer.status.cases if case.finding is not None}
    found = {number: present_state(case, dry_run=answer.status.dry_run) for number, case in cases.items()}
    for row in answer.judgements:
        case = cases.get(row.finding)
        words = verdict_text(case.verdict if case and case.judged and case.verdict else row.verdict)
        if row.verdict == Verdict.UNDONE_BY_HAND or not (row.usual or row.contended or row.after):
            found[row.finding] = (case.measured_text if case else "") or words
        else:
            found[row.finding] = (f"{words}: {rate_text(row.usual)} before, {rate_text(row.contended)} during, "
                                  f"{rate_text(row.after)} after")
    return found


def present_state(case: Case, *, dry_run: bool) -> str:
    """State of a case, or why nothing is done about its finding, in the words of the page."""
    if case.state:
        return state_text(case.state, case.verdict, undo_reason=case.undo_reason, dry_run=dry_run)
    return f"{FOUND}: {'; '.join(why.sentence for why in case.why_not) or 'not acted on'}"


def acts_table(answer: ReportAnswer) -> str:
    rows: list[tuple[str, ...]] = [
        (str(e.id), utc_time(e.time), e.outcome, f"{e.kind} {quoted(e.place)}",
             e.detail or e.after or "", e.reason) for e in answer.acts]
    return html_table(("No.", "When", "Outcome", "Act", "What", "Because"), rows, answer.all_acts)


def html_table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]], all_of_them: int) -> str:
    """An HTML table. Each cell is escaped text."""
    if not rows:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(title)}</th>" for title in header)
    lines = "".join("<tr>" + "".join(f"<td>{escape(printable(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    more = f"<p>The last {len(rows)} of {all_of_them}.</p>" if all_of_them > len(rows) else ""
    return f"<div><table><tr>{head}</tr>{lines}</table></div>{more}"


def utc_time(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


SAMPLE_SECONDS = 60.0
