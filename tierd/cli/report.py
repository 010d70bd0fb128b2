"""``tierctl report``: write findings, acts and verdicts of a period to one self-contained HTML file."""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from tierd.cli import client
from tierd.daemon.answers import ReportAnswer, from_json
from tierd.daemon.client import ControlError, ask

_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``tierctl report``."""
    report = commands.add_parser(
        "report", help="write an HTML report of findings, acts and their effect",
        description="Write one HTML file with plots, findings, acts and verdicts from the journal. The file loads "
                    "nothing from the network.")
    client.add_daemon_options(report)
    report.add_argument("--since", default="1d", metavar="WHEN",
                        help="start: 6h, 7d, or 2026-11-20T08:00 in UTC (default: %(default)s)")
    report.add_argument("--until", default="", metavar="WHEN",
                        help="end: 6h, 7d, or 2026-11-20T08:00 in UTC (default: now)")
    report.add_argument("-o", "--output", type=Path, default=Path("tierd-report.html"), metavar="FILE",
                        help="output file; - writes to standard output (default: %(default)s)")
    report.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Request the data and write the page."""
    now = datetime.now(UTC).timestamp()
    try:
        until = moment(chosen.until, now) if chosen.until else now
        since = moment(chosen.since, until)
        if since >= until:
            raise ValueError(f"--since {chosen.since} is not before --until")
        answer = ask(client.socket_of(chosen), {"request": "report", "since": since, "until": until})
    except (ControlError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if chosen.json:
        print(json.dumps(answer, indent=1))
        return 0
    from tierd.daemon.report import report_page  # noqa: PLC0415 -- only here

    try:
        report = from_json(ReportAnswer, answer)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    text = report_page(report)
    if str(chosen.output) == "-":
        print(text)
        return 0
    try:
        chosen.output.write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"{chosen.output}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{chosen.output}: {sum(report.kinds.values())} findings, {report.all_acts} acts")
    return 0


def moment(text: str, now: float) -> float:
    """Parse a duration before ``now``, or a time in UTC. Raises ValueError.

    >>> moment("2h", 10_000.0), moment("1970-01-01T01:00", 0.0)
    (2800.0, 3600.0)
    """
    span = _SPAN.fullmatch(text)
    if span:
        return now - float(span[1]) * _SECONDS[span[2]]
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a duration (6h, 7d) nor a time (2026-11-20T08:00)") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
