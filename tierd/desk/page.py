"""The page of ``tierctl report``: what was seen, what was done, what it brought."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from tierd.desk.curves import EVERY_SECONDS
from tierd.desk.plots import plot
from tierd.text import printable, quoted, some

_STYLE = """
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;padding:1em;max-width:60em;
overflow-wrap:anywhere}h1{font-size:1.5em}h2{font-size:1.15em;margin:1.8em 0 .4em}
div{overflow-x:auto}table{border-collapse:collapse;width:100%}td{min-width:5em}
th,td:nth-child(-n+3){white-space:nowrap;overflow-wrap:normal;min-width:0}
th,td{padding:.3em .8em .3em 0;text-align:left;border-bottom:1px solid #8884;vertical-align:top}
figure{margin:1em 0}figcaption{font-weight:600}svg{width:100%;height:auto}
svg text{font-size:12px;fill:currentColor;opacity:.8}svg path{fill:none;stroke-width:1.6}
.grid{stroke:currentColor;opacity:.15}.mark{stroke:#c2452d;opacity:.45;stroke-dasharray:3 3}.big{font-size:1.25em}"""
VERDICTS = {"helped": "helped, kept", "did-not-help": "did not help, taken back",
            "harmed-others": "others paid for it, taken back", "cannot-tell": "cannot be judged"}


def page(answer: dict[str, Any]) -> str:
    """The whole file."""
    since, until = answer["since"], answer["until"]
    samples = answer["samples"]
    marks = [(f["time"], f["sentence"]) for f in answer["findings"] if f["victim"]]
    acted = [(e["time"], f"{e['kind']} {quoted(e['place'])}: {e['outcome']}") for e in answer["default_layouts"]]
    streams = {name.partition(" ")[2]: [(t, v / 1e6) for t, v in points]
               for name, points in samples.items() if name.startswith("victim ")}
    pools = {name.partition(" ")[2]: [(t, 100 * v) for t, v in points]
             for name, points in samples.items() if name.startswith("pool ")}
    begun = drawn_since(answer)
    missing = unknown_before(answer) + removed_before(answer)
    body = [
        f"<h1>tierd on {escape(answer['mount'])}</h1>",
        f"<p>{day(since)} to {day(until)}, UTC. {safe(stance(answer))}{missing}</p>",
        f'<p class="big">{safe(summary(answer))}</p>',
        "<h2>Streams that were slowed</h2>",
        plot("Throughput; dashed lines: a default layout was set, or would have been", "MB/s", streams, begun, until,
             acted),
        "<h2>What went on</h2>",
        plot("Findings that held; dashed lines: one began", "number",
             {"findings": samples.get("findings", [])}, begun, until, marks),
        plot("Files in the queue", "number", {"waiting moves": samples.get("waiting moves", [])}, begun, until),
        plot("Pools in use", "%", pools, begun, until),
        "<h2>Findings</h2>", findings(answer), "<h2>Acts</h2>", acts(answer),
    ]
    head = (f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>tierd report</title><style>{_STYLE}</style>")
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def first_known(answer: dict[str, Any]) -> float:
    """When the first point of a curve was recorded; the beginning of the period where there is none."""
    return min((float(points[0][0]) for points in answer["samples"].values() if points), default=float(answer["since"]))


def drawn_since(answer: dict[str, Any]) -> float:
    """Where the pictures begin: not long before anything is known, or an hour at work would be a stroke in a week."""
    since, first = float(answer["since"]), first_known(answer)
    if first - since <= 2 * EVERY_SECONDS:
        return since
    return max(since, first - (float(answer["until"]) - first) / 20)


def removed_before(answer: dict[str, Any]) -> str:
    """That single acts and findings of the period were removed."""
    begins = answer["complete_since"]
    if not answer["removed_acts"] or begins <= answer["since"]:
        return ""
    return f" The journal has single findings and acts since {day(begins)}, and sums of earlier ones by days."


def unknown_before(answer: dict[str, Any]) -> str:
    """That the pictures show less than was asked for."""
    if drawn_since(answer) <= answer["since"]:
        return ""
    return f" Nothing was recorded before {day(first_known(answer))}, and the pictures begin there."


def stance(answer: dict[str, Any]) -> str:
    """How tierd stands now."""
    status = answer["status"]
    dry = " Dry run: nothing was changed." if status["dry_run"] else ""
    return f"Mode {status['mode']}.{dry}" + (f" Paused: {status['paused']}." if status["paused"] else "")


def summary(answer: dict[str, Any]) -> str:
    """The period in a sentence."""
    found = ", ".join(f"{count} {kind}" for kind, count in answer["kinds"].items()) or "nothing found"
    judged = ", ".join(f"{count} {VERDICTS.get(name, name)}" for name, count in answer["verdicts"].items())
    gigabytes = answer["bytes_moved"] / 1e9
    after = f"; of what was judged: {judged}" if judged else ""
    return f"{found}; {answer['all_acts']} acts, {answer['files_moved']} files moved, {gigabytes:.2f} GB{after}."


def findings(answer: dict[str, Any]) -> str:
    """With what was measured afterwards."""
    judged = {j["finding"]: j for j in answer["judgements"]}
    rows: list[tuple[str, ...]] = []
    for finding in answer["findings"]:
        verdict = judged.get(finding["id"])
        result = "" if verdict is None else (
            f"{VERDICTS.get(verdict['verdict'], verdict['verdict'])}: {verdict['usual'] / 1e6:.1f} MB/s before, "
            f"{verdict['contended'] / 1e6:.1f} during, {verdict['after'] / 1e6:.1f} after")
        where = some(finding["directories"], 16)
        rows.append((f"F{finding['id']}", day(finding["time"]), finding["kind"], finding["sentence"], where, result))
    return table(("No.", "When", "Kind", "What", "Where", "Verdict"), rows, sum(answer["kinds"].values()))


def acts(answer: dict[str, Any]) -> str:
    """The last of them."""
    rows: list[tuple[str, ...]] = [
        (str(e["id"]), day(e["time"]), e["outcome"], f"{e['kind']} {quoted(e['place'])}",
             e["detail"] or e["after"] or "", e["reason"]) for e in answer["acts"]]
    return table(("No.", "When", "Outcome", "Act", "What", "Because"), rows, answer["all_acts"])


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]], all_of_them: int) -> str:
    """Rows, each cell as text."""
    if not rows:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(title)}</th>" for title in header)
    lines = "".join("<tr>" + "".join(f"<td>{safe(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    more = f"<p>The last {len(rows)} of {all_of_them}.</p>" if all_of_them > len(rows) else ""
    return f"<div><table><tr>{head}</tr>{lines}</table></div>{more}"


def safe(words: str) -> str:
    """Text of a page: names may hold anything, halves of characters too."""
    return escape(printable(words))


def day(time: float) -> str:
    """A moment."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
