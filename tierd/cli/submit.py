"""``tierctl submit``: files handed in by a program, such as robinhood's ``cmd()``. One write, no waiting.

Imports next to nothing, since robinhood starts it once for every file. A submitted file is a wish: the daemon reads
the file again, and acts by its modes, limits and refusals.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence

from tierd.daemon.client import ControlError, ask

TIMEOUT_SECONDS = 5.0
PATHS_PER_REQUEST = 1000
DESCRIPTION = ("Hands files over to be promoted (or demoted) in time. Ends at once: 0 when they were taken in, 75 when "
               "tierd has too many waiting or does not answer in time (try again later), 1 for a mistake.")
EXIT_TRY_AGAIN = 75
"""EX_TEMPFAIL of sysexits.h."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line."""
    submit = commands.add_parser(
        "submit", help="queue files for migration, for robinhood's cmd(); does not wait",
        description=DESCRIPTION)
    add_options(submit)
    submit.set_defaults(run=run)


def add_options(submit: argparse.ArgumentParser) -> None:
    """Arguments; robinhood gives {fullpath} and whatever one wants to see in the journal."""
    submit.add_argument("paths", nargs="*", metavar="PATH", help="below the mount; - reads them from standard input")
    submit.add_argument("-0", "--null", action="store_true", help="paths on standard input end with a NUL")
    submit.add_argument("--demote", action="store_true", help="to the disks (default: to flash)")
    submit.add_argument("--reason", default="", metavar="WORDS", help="for the journal: robinhood's {rule}")
    submit.add_argument("--fs", metavar="NAME", help="of several file systems: the tierd of /run/tierd/NAME")
    submit.add_argument("--socket", metavar="PATH", help="the tierd that listens there")
    submit.add_argument("--json", action="store_true", help="the answer, for programs")


def run(chosen: argparse.Namespace) -> int:
    """Hand over in batches."""
    from tierd.cli.client import socket_of  # noqa: PLC0415 -- only what is needed, only when it is

    paths = split_paths(sys.stdin.buffer.read(), null=chosen.null) if chosen.paths == ["-"] else chosen.paths
    if not paths:
        print("no paths were given", file=sys.stderr)
        return 1
    taken = 0
    for batch in batches(paths):
        request = {"request": "submit", "paths": batch, "direction": "demote" if chosen.demote else "promote",
                   "reason": chosen.reason}
        try:
            answer = ask(socket_of(chosen), request, TIMEOUT_SECONDS)
        except ControlError as error:
            print(f"{error}" + (f" ({taken} of {len(paths)} were taken before)" if taken else ""), file=sys.stderr)
            return EXIT_TRY_AGAIN if error.again else 1
        taken += int(answer["accepted"])
    print(f'{{"accepted": {taken}}}' if chosen.json else f"accepted: {taken}")
    return 0


def split_paths(data: bytes, *, null: bool) -> list[str]:
    r"""Paths of standard input: whatever bytes, but the one that ends them.

    >>> split_paths(b"/a\nb\0/c\0", null=True), split_paths(b"/a\n\n/\xff\n", null=False)
    (['/a\nb', '/c'], ['/a', '/\udcff'])
    """
    return [os.fsdecode(part) for part in data.split(b"\0" if null else b"\n") if part]


def batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """At most so many in one request."""
    for first in range(0, len(paths), PATHS_PER_REQUEST):
        yield paths[first:first + PATHS_PER_REQUEST]
