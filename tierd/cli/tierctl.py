"""The command ``tierctl``: control tierd and show layouts; in a checkout of the source, also run the simulator."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC

from lustre import __version__
from lustre.standard_output import standard_output
from tierd import cli, dependencies
from tierd.cli import client
from tierd.text import printable

TYPE_CHECKING = False  # tierctl starts faster without typing
if TYPE_CHECKING:
    from typing import Any, NoReturn
EXAMPLES = """\
examples:
  tierctl status                                         show what tierd does, findings and the queue
  tierctl explain F3                                     show evidence, acts and verdict of a finding
  tierctl plan                                           show what tierd would do now
  tierctl pause --for 2h "maintenance"                   stop all changes for two hours
  tierctl history; tierctl undo 17                       list acts; undo one act
  tierctl promote /mnt/lustre/proj/run7 --preview        show what would move to flash; without --preview, queue it
"""


class Formatter(argparse.HelpFormatter):
    """Finds the width of the terminal without shutil: importing that takes half as long as a start of Python."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns() - 2)


class ExamplesFormatter(Formatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the examples."""


class Parser(argparse.ArgumentParser):
    """A parser with that formatter, for itself and its commands. argparse makes a formatter for each argument."""

    def __init__(self, formatter_class: type[Formatter] = Formatter, **more: Any) -> None:
        super().__init__(formatter_class=formatter_class, **more)

    def error(self, message: str) -> NoReturn:
        """Exit with a message, which may have the names of files that the shell put in."""
        super().error(printable(message))


def columns() -> int:
    """Width of the terminal: COLUMNS, or that of standard output; 80 without one."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def parser(command: str = "") -> argparse.ArgumentParser:
    """The command line of all commands, or of one command only."""
    main_parser = Parser(
        prog="tierctl", epilog=EXAMPLES, formatter_class=ExamplesFormatter,
        description="Control the tierd daemon, and show layouts of files on Lustre.")
    main_parser.add_argument("--version", action="version", version=f"tierctl {__version__}")
    client.add_daemon_options(main_parser, default=None)
    subparsers = main_parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in cli.modules_for(command):
        module.add(subparsers)
    return main_parser


@standard_output("tierctl")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; 2 if packages of the extra ``tierd`` are not installed."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return run_command(given)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return client.INTERRUPTED
    except ModuleNotFoundError as error:
        return dependencies.report_missing("tierctl", error)


def run_command(given: Sequence[str]) -> int:
    found = parser(command_in(given)).parse_args(given)
    zone = client.ZONE.set(UTC if found.utc else None)
    try:
        code: int = found.run(found)
    finally:
        client.ZONE.reset(zone)
    return code


def command_in(given: Sequence[str]) -> str:
    """Return the command: the first argument that is neither an option nor the value of one. "" without a command.

    >>> command_in(["--fs", "scratch", "status"]), command_in(["--socket=/s", "--utc", "top"]), command_in(["--help"])
    ('status', 'top', '')
    """
    words = iter(given)
    for word in words:
        if word in {"--fs", "--socket"}:
            next(words, "")
        elif not word.startswith("-"):
            return word
    return ""


if __name__ == "__main__":
    sys.exit(main())
