"""The status page of tierd's port: the HTML of it."""

from __future__ import annotations

from datetime import UTC, datetime

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
HOLD_WORDS = {"paused": "Paused", "held": "Held", "draining": "Draining"}


def not_done_html(whys: list[dict[str, str]]) -> str:
    """Why nothing, or nothing more, is done about a finding, and what would change that."""
    return "".join(f"<p>Not done: {html_safe(why['sentence'])}" + (
        f"; to change that: {html_safe(why['remedy'])}" if why["remedy"] else "") + "</p>" for why in whys)


def short_time(seconds: float) -> str:
    """A time for people.

    >>> short_time(1_795_000_000)
    '11-18 11:06:40'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%m-%d %H:%M:%S")
