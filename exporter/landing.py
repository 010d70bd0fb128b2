"""The page a person sees: what was found on this node, and how each collector fares."""

from __future__ import annotations

from html import escape

from exporter.scrape import Outcome, Scraper
from lustre import __version__

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Lustre exporter</title>
<style>body{{font-family:sans-serif;margin:2em;max-width:60em}}td,th{{padding:.2em 1em .2em 0;text-align:left}}</style>
</head><body><h1>Lustre exporter</h1>
<p>Release {version}. <a href="{metrics}">Metrics</a></p>
{closed}<table><tr><th>Collector</th><th>State</th><th>Took</th><th>Read</th><th>Left out</th></tr>
{rows}
</table></body></html>
"""


def page(scraper: Scraper, telemetry_path: str) -> bytes:
    """The landing page, as of the latest scrape."""
    closed = "".join(
        f"<p>Not readable by this process: <code>{escape(place)}</code>. What is there is missing from the metrics;"
        " CAP_DAC_READ_SEARCH opens it.</p>\n"
        for place in scraper.tree.closed()
    )
    rows = "\n".join(_row(name, outcome) for name, outcome in scraper.outcomes.items())
    metrics = escape(telemetry_path, quote=True)
    return _PAGE.format(version=escape(__version__), metrics=metrics, closed=closed, rows=rows).encode()


def _row(name: str, outcome: Outcome) -> str:
    skipped = sum(outcome.tally.skipped.copy().values())
    errors = sum(outcome.tally.errors.copy().values())
    left_out = ", ".join(f"{number} {what}" for number, what in ((skipped, "lines"), (errors, "readings")) if number)
    if outcome.reason:
        state = escape(outcome.reason)
    else:
        state = "found" if outcome.samples else "nothing here yet"
    return (
        f"<tr><td>{escape(name)}</td><td>{state}</td><td>{outcome.seconds * 1000:.0f} ms</td>"
        f"<td>{outcome.tally.bytes_read / 1e6:.1f} MB</td><td>{left_out}</td></tr>"
    )
