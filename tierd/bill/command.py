"""``tierctl bill``: what jobs, users and projects cost others, and lost to others."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime

from tierd.bill.entries import BillAnswer, BillEntry, by_case, by_side
from tierd.cli import client
from tierd.text import count_of, printable


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    bill = commands.add_parser(
        "bill", help="show what jobs cost other jobs, and lost to them",
        description="Show the bytes that streams lost to jobs with small files, with an interval that holds them with "
                    "a probability of 90%. Losses that may be zero are counted but not billed. The journal keeps "
                    "the bill for a year.")
    client.add_daemon_options(bill)
    bill.add_argument("--by", choices=("job", "user", "project"), default="job",
                      help="print one line for each; a project is an account of the scheduler (default: %(default)s)")
    bill.add_argument("--since", default="30d", metavar="WHEN", type=client.moment_option,
                      help="start: 6h, 7d, or 2026-11-20T08:00 in local time (default: %(default)s)")
    bill.add_argument("--job", default="", metavar="JOB", help="show only what this job cost and lost")
    bill.add_argument("--user", default="", metavar="USER", help="user of --job, if several clusters have its number")
    which = bill.add_mutually_exclusive_group()
    which.add_argument("--csv", action="store_true", help="print all cases as CSV, with bytes and seconds")
    which.add_argument("--line", action="store_true",
                       help="print one sentence about --job, or nothing if there is no bill")
    bill.set_defaults(run=run, wrong=bill.error)


def run(chosen: argparse.Namespace) -> int:
    """Ask for the entries, and print them."""
    if (chosen.user or chosen.line) and not chosen.job:  # the bill of all jobs would be taken for that of a user
        chosen.wrong("--user and --line need --job")
    now = datetime.now(UTC).timestamp()
    request = {"request": "bill", "since": client.moment(chosen.since, now), "job": chosen.job, "user": chosen.user}

    def show(answer: BillAnswer) -> list[str]:
        return csv_lines(answer) if chosen.csv else sentence(answer) if chosen.line else table(answer, chosen.by)

    return client.ask_and_show(chosen, request, BillAnswer.from_json, show)


def table(answer: BillAnswer, by: str) -> list[str]:
    """The bill, those that cost others most first."""
    sides = sorted(by_side(answer.entries, by).items(),
                   key=lambda side: (-sum(each.lost_bytes for each in side[1][0]), side[0]))
    width = max((len(printable(name)) for name, _ in sides), default=0)
    since = min([answer.since, *(each.begun_at for each in answer.entries)])  # an entry counts as a whole
    begin, end = map(client.time_text, (since, answer.until))
    lines = [f"from {begin} to {end}: what jobs with small files cost streams (90% interval)",
             f"{by.upper():{width}}  {'cost others':34}  lost to others" if sides else
             "no stream certainly lost anything to another job"]
    lines += [f"{printable(name):{width}}  {lost_text(cost):34}  {lost_text(lost)}" for name, (cost, lost) in sides]
    if answer.uncertain:
        lines.append(f"not billed: {count_of(answer.uncertain, 'case')} in which the stream may have lost nothing")
    return lines


def lost_text(entries: Sequence[BillEntry]) -> str:
    """The sum of entries; empty without any."""
    if not entries:
        return ""
    from tierd.detect.account import total  # noqa: PLC0415 -- slow to load, and most jobs have no bill

    return str(total(by_case(entries)))


def sentence(answer: BillAnswer) -> list[str]:
    """One sentence about a job, for the comment of a scheduler; none without a bill."""
    cost = [each for each in answer.entries if each.aggressor in answer.jobs]
    lost = [each for each in answer.entries if each.victim in answer.jobs]
    parts = [f"cost other jobs {lost_text(cost)}"] * bool(cost) + [f"lost {lost_text(lost)} to other jobs"] * bool(lost)
    return [" and ".join(parts)] if parts else []


def csv_lines(answer: BillAnswer) -> list[str]:
    out = io.StringIO()
    rows = csv.DictWriter(out, BillEntry.__struct_fields__, lineterminator="\n")
    rows.writeheader()
    rows.writerows({name: getattr(each, name) for name in BillEntry.__struct_fields__} for each in answer.entries)
    return out.getvalue().splitlines()
