"""``tierctl report``: findings, acts and verdicts of a period, as lines, and as one self-contained HTML file."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from tierd.cli import client
from tierd.daemon.answers import ReportAnswer
from tierd.daemon.client import ControlError, ask
from tierd.text import printable


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
    except (ControlError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if chosen.json:
        print(json.dumps(answer, indent=1))
        return 0
    from tierd.daemon.report import report_lines, report_page  # noqa: PLC0415 -- only here

    try:
        report = ReportAnswer.from_json(answer)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
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
    print("\n".join(map(printable, [*report_lines(report, client.time_text), last])))
    return 0
