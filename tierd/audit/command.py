"""``tierctl audit``: the settings of this node, compared with the papers and the manual. Needs no daemon."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from lustre.parameters import Roots
from tierd.audit.checks import Line, State, audit
from tierd.audit.node import read_node
from tierd.structs import json_text
from tierd.text import count_of, printable

WIDTH = 116


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    auditing = commands.add_parser(
        "audit", help="compare the settings of this node with papers and the Lustre manual",
        description="Compare the Lustre and Omni-Path settings of this node with the values in papers and in the "
                    "Lustre manual. A setting that differs is advice only if the counters of this node show that it "
                    "matters, else a note. Changes nothing and needs no daemon. Run it as root: counters of a client "
                    "are in debugfs.")
    auditing.add_argument("--all", action="store_true", help="also print settings that are fine")
    auditing.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print all lines as JSON")
    auditing.add_argument("--path.procfs", dest="procfs", type=Path, default=Path("/proc"), metavar="DIR",
                          help="mount point of procfs (default: /proc)")
    auditing.add_argument("--path.sysfs", dest="sysfs", type=Path, default=Path("/sys"), metavar="DIR",
                          help="mount point of sysfs (default: /sys)")
    auditing.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the lines; 1, with an error message, on a node without Lustre."""
    node = read_node(Roots.of(chosen.procfs, chosen.sysfs))
    if not node.loaded:
        print("Lustre is not loaded on this node: there is nothing to compare", file=sys.stderr)
        return 1
    for path in node.unreadable:
        print(printable(f"cannot read {path}: run this command as root"), file=sys.stderr)
    lines = audit(node)
    if chosen.json:
        print(json_text([dataclasses.asdict(line) for line in lines], indent=1))
    else:
        print("\n".join(text(lines, everything=chosen.all)))
    return 0


def text(lines: Sequence[Line], *, everything: bool) -> Iterator[str]:
    """The lines in words: advice first, then notes, then what is unknown; settings that are fine only on request."""
    for state in (State.ADVICE, State.NOTE, State.UNKNOWN, *([State.OK] if everything else [])):
        for line in lines:
            if line.state is state:
                yield from paragraph(line)
    fine = sum(line.state is State.OK for line in lines)
    hidden = "" if everything or not fine else " (--all shows them)"
    yield printable(f"{count_of(len(lines), 'setting')} compared: "
                    + ", ".join(f"{sum(line.state is state for line in lines)} {state}" for state in State) + hidden)


def paragraph(line: Line) -> Iterator[str]:
    yield printable(f"{line.state.upper():8}{line.setting}")
    for name, words in (("advised", line.source), ("why", line.why), ("expect", line.expect)):
        if words:
            yield from textwrap.wrap(printable(f"{name + ':':9}{words}"), WIDTH, initial_indent=" " * 8,
                                     subsequent_indent=" " * 17, break_on_hyphens=False)
    if line.command:
        where = "  (on the MGS)" if "set_param -P " in line.command else ""
        yield printable(f"{'':8}{'command:':9}{line.command}{where}")
    yield ""
