"""``tierctl promote PATH``, ``demote PATH``: files moved by order, through the same gate as all others."""

from __future__ import annotations

import argparse
import os
from functools import partial

from lustre.layout.size import parse_size
from tierd.cli import client, progress
from tierd.cli.client import positive
from tierd.daemon.answers import OrderAnswer, from_json
from tierd.text import bytes_text, quoted, shell_word

DESTINATIONS = {"promote": "to flash", "demote": "to the disks"}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command lines."""
    for name, where in DESTINATIONS.items():
        command = commands.add_parser(
            name, help=f"move a file, or the files below a directory, {where}",
            description=f"Puts a file, or all files below a directory, into the queue of moves {where}: in pace with "
                        "[limits], in the journal, undone with tierctl undo, and only told in a dry run. Modes do not "
                        "hold for what you ask for by name; users' opt-outs and pins do.")
        command.add_argument("path", type=nonempty_path, metavar="PATH",
                             help="below the mount, or from the root of the file system")
        command.add_argument("--max-files", type=positive, default=1000, metavar="N",
                             help="of a directory, no more than so many (default: %(default)s)")
        command.add_argument("--max-bytes", type=size_bytes_of, default=1 << 40, metavar="SIZE",
                             help="nor more than this together: 500G (default: 1T)")
        command.add_argument("--preview", action="store_true", help="show what would be queued; change nothing")
        progress.add_wait_option(command)
        client.add_daemon_options(command)
        command.set_defaults(run=run, command=name)


def nonempty_path(path: str) -> str:
    """A path; an empty one is a slip in a script, and not the folder one is in."""
    if not path:
        raise argparse.ArgumentTypeError("an empty path")
    return path


def size_bytes_of(text: str) -> int:
    """A size as ``lfs`` writes it."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(chosen: argparse.Namespace) -> int:
    """Order it. The path is taken as a shell gives it: from the folder one is in."""
    path = chosen.path if chosen.path.startswith("/") else os.path.abspath(chosen.path)
    request = {"request": chosen.command, "path": path, "most_files": chosen.max_files,
               "most_bytes": chosen.max_bytes, "preview": chosen.preview}
    return progress.ask_and_wait(
        chosen, lambda: client.ask_and_show(chosen, request, partial(from_json, OrderAnswer), order_lines),
        waits=chosen.wait and not chosen.preview
    )


def order_lines(answer: OrderAnswer) -> list[str]:
    """What the order comes to."""
    amount = f"{answer.files} files, {bytes_text(answer.size_bytes)},"
    what = f"{amount} of {quoted(answer.path)} {DESTINATIONS[answer.direction]}"
    if not answer.files:
        lines = [f"nothing to {answer.direction} at {quoted(answer.path)}"]
    elif answer.preview:
        lines = [f"would queue {what}"]
    elif answer.held:
        lines = [f"queued {what}; the files wait: {answer.held}"]
    else:
        dry = "; dry run: nothing is moved" if answer.dry_run else ""
        lines = [f"queued {what}{dry}; see tierctl status and tierctl history"]
    lines += [f"  left out: {count}: {why}" for why, count in answer.left_out.items()]
    for action in answer.actions[: 5 if answer.files else 0]:
        lines.append(f"  lfs migrate --non-block {action.layout} {shell_word(action.path)}")
    return [*lines, f"  and {answer.files - 5} more"] if answer.files > 5 else lines
