"""HTML of the status page on tierd's port."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from tierd.daemon.answers import ActAnswer, HistoryAnswer, PageAnswer, RefusalAnswer
from tierd.text import html_safe

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="10"><title>tierd</title><style>
:root{{color-scheme:light dark}}body{{font:16px/1.5 system-ui,sans-serif;margin:0 auto;padding:1em;max-width:60em;
overflow-wrap:anywhere}}h1{{font-size:1.5em}}h2{{font-size:1.15em;margin:1.6em 0 .4em}}table{{border-collapse:collapse;
width:100%}}td:nth-child(-n+3),th{{white-space:nowrap}}
th,td{{padding:.3em .8em .3em 0;text-align:left;border-bottom:1px solid #8884;vertical-align:top}}
.bad{{color:#c33;font-weight:600}}</style></head><body><h1>tierd</h1>
<p>{state}</p>{faults}<p><a href="/metrics">Metrics</a></p>
<h2>Findings now</h2>{findings}<h2>Last acts</h2>{acts}</body></html>
"""


def status_page(status: PageAnswer, history: HistoryAnswer) -> str:
    """The whole page: state, findings, remediations and the last acts."""
    faults = "".join(f'<p class="bad">Cannot see: {html_safe(words)}</p>' for words in status.faults.values())
    faults += "".join(f'<p class="bad">Stalled: {html_safe(words)}</p>' for words in status.stalled)
    found = zip(status.finding_ids, status.findings, status.why_not, strict=True)
    findings = "".join(f"<p>F{number}: {html_safe(sentence)}</p>{refusals_html(refusals)}"
                       for number, sentence, refusals in found)
    return PAGE.format(state=html_safe(state_sentence(status)), faults=faults, findings=findings or "<p>None.</p>",
                       acts=acts_html(history.entries))


def state_sentence(status: PageAnswer) -> str:
    """Mode, and what holds acts back: the first of pause, hold and drain."""
    holds = ("Paused", status.paused), ("Held", status.held), ("Draining", status.draining)
    held = next((f"{word}: {reason}." for word, reason in holds if reason), "At work.")
    return f"{held} Mode {status.mode}." + (" Dry run: nothing is changed." if status.dry_run else "")


def refusals_html(refusals: Sequence[RefusalAnswer]) -> str:
    """Refusals for a finding, each with its remedy."""
    return "".join(f"<p>Not done: {html_safe(each.sentence)}" + (
        f"; to change that: {html_safe(each.remedy)}" if each.remedy else "") + "</p>" for each in refusals)


def acts_html(entries: Sequence[ActAnswer]) -> str:
    """A table of acts, the latest first."""
    rows = "".join(
        f"<tr><td>{entry.id}</td><td>{short_time(entry.time)}</td><td>{escape(entry.outcome)}</td>"
        f"<td>{escape(entry.kind)} {html_safe(entry.place + (f': {entry.detail}' if entry.detail else ''))}</td>"
        f"<td>{html_safe(str(entry.after))}</td><td>{html_safe(entry.reason)}</td></tr>"
        for entry in reversed(entries))
    head = "<tr><th>No.</th><th>When (UTC)</th><th>Outcome</th><th>Act</th><th>Layout</th><th>Because</th></tr>"
    return f"<table>{head}{rows}</table>" if rows else "<p>None.</p>"


def short_time(seconds: float) -> str:
    """A time for people.

    >>> short_time(1_795_000_000)
    '11-18 11:06:40'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%m-%d %H:%M:%S")
