"""``tierctl report``: findings and verdicts of a period, and the sums of its acts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from tierd.acts import ORDER_KINDS
from tierd.cli import client
from tierd.cli.control import headline
from tierd.daemon.answers import ReportAnswer
from tierd.daemon.states import verdict_text
from tierd.text import bytes_text, count_of


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = client.add_command(
        commands, "report", "show findings, acts and their effect in a period", run,
        "Print the findings of a period with their verdicts, from the journal. With --json, also its acts and curves.")
    report.add_argument("--since", default="1d", metavar="WHEN",
                        help="start: 6h, 7d, or 2026-11-20T08:00 in local time (default: %(default)s)")
    report.add_argument("--until", default="", metavar="WHEN",
                        help="end: 6h, 7d, or 2026-11-20T08:00 in local time (default: now)")


def run(chosen: argparse.Namespace) -> int:
    """Request the data, and print the lines."""
    now = datetime.now(UTC).timestamp()
    try:
        until = client.moment(chosen.until, now) if chosen.until else now
        since = client.moment(chosen.since, until)
        if since >= until:
            raise ValueError(f"--since {chosen.since} is not before --until")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return client.ask_and_show(chosen, {"request": "report", "since": since, "until": until}, ReportAnswer.from_json,
                               report_lines)


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
    """The report in short: the sums of the period, and the last findings that are not advice, each with its verdict."""
    acted = [case for case in answer.cases if case.state or case.victim]
    lines = [f"{time_text(answer.since)} to {time_text(answer.until)}; {headline(answer.status)}",
             summary_sentence(answer)]
    for case in acted[-MAX_LINES:]:
        lines += [f"{case.name}  {time_text(case.since)}  {case.kind}: {case.sentence}",
                  f"    {case.result_text}"]
    left = sum(count for kind, count in answer.kinds.items() if kind not in ORDER_KINDS) - min(len(acted), MAX_LINES)
    return [*lines, f"and {count_of(left, 'finding')} more"] if left else lines
