"""``tierctl submit``: queue files from a program, such as robinhood's ``cmd()``, without waiting.

The module imports little, because robinhood starts it once for every file. A submitted file is a request: the daemon
checks the file again and applies its modes, limits and refusals.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence

from tierd.cli import client
from tierd.daemon.client import ControlError, ask
from tierd.text import printable

TIMEOUT_SECONDS = 5.0
PATHS_PER_REQUEST = 1000
DESCRIPTION = ("Queue files for promotion or demotion, without waiting. Exit status: 0 accepted; 75 the queue is full "
               "or tierd does not answer in time (try again later); 1 error.")
EXIT_TRY_AGAIN = 75
"""EX_TEMPFAIL of sysexits.h."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    submit = client.add_command(commands, "submit", "queue files for migration, from robinhood's cmd()", run,
                                DESCRIPTION)
    submit.add_argument("paths", nargs="*", metavar="PATH",
                        help="path below the mount point; - reads paths from standard input")
    submit.add_argument("-0", "--null", action="store_true",
                        help="paths on standard input end with NUL instead of newline")
    submit.add_argument("--demote", action="store_true", help="move to HDD (default: to flash)")
    submit.add_argument("--reason", default="", metavar="WORDS",
                        help="reason for the journal, for example robinhood's {rule}")


def run(chosen: argparse.Namespace) -> int:
    paths = split_paths(sys.stdin.buffer.read(), null=chosen.null) if chosen.paths == ["-"] else chosen.paths
    if not paths:
        print("no paths given", file=sys.stderr)
        return 1
    taken = 0
    for batch in batches(paths):
        request = {"request": "submit", "paths": batch, "direction": "demote" if chosen.demote else "promote",
                   "reason": chosen.reason}
        try:
            accepted = ask(client.socket_of(chosen), request, TIMEOUT_SECONDS).get("accepted")
            if not isinstance(accepted, int):
                raise ControlError("unexpected answer: it lacks the number of accepted files")
        except ControlError as error:
            before = f" (accepted before: {taken} of {len(paths)})" if taken else ""
            print(f"{printable(str(error))}{before}", file=sys.stderr)
            return EXIT_TRY_AGAIN if error.again else 1
        except KeyboardInterrupt:
            print(f"interrupted; accepted before: {taken} of {len(paths)}", file=sys.stderr)
            return client.INTERRUPTED
        taken += accepted
    print(f'{{"accepted": {taken}}}' if chosen.json else f"accepted: {taken}")
    return 0


def split_paths(data: bytes, *, null: bool) -> list[str]:
    r"""Split standard input at NUL or newline; paths may have any other bytes.

    >>> split_paths(b"/a\nb\0/c\0", null=True), split_paths(b"/a\n\n/\xff\n", null=False)
    (['/a\nb', '/c'], ['/a', '/\udcff'])
    """
    return [os.fsdecode(part) for part in data.split(b"\0" if null else b"\n") if part]


def batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(paths), PATHS_PER_REQUEST):
        yield paths[first:first + PATHS_PER_REQUEST]
