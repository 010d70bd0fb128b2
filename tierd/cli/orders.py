"""``tierctl promote`` and ``tierctl demote``: queue moves of files by name, within all checks and limits of tierd.

``tierctl stages`` shows what jobs of a scheduler ordered.
"""

from __future__ import annotations

import argparse
import os

from lustre.layout.size import parse_size
from tierd.acts import OrderKind, name_of
from tierd.cli import client, progress
from tierd.cli.client import positive
from tierd.daemon.answers import DESTINATIONS, OrderAnswer, StagingsAnswer


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    for name, where in DESTINATIONS.items():
        command = client.add_command(
            commands, name, f"move a file or the files below a directory {where}", run,
            f"Queue moves of a file or of all files below a directory {where}. [limits], opt-outs and pins of users "
            "apply; modes do not. The journal records each move; tierctl undo reverses it. In a dry run tierd only "
            "reports the moves.")
        command.add_argument("path", type=nonempty_path, metavar="PATH",
                             help="path below the mount point, or from the root of the file system")
        command.add_argument("--max-files", type=positive, default=1000, metavar="N",
                             help="maximum number of files below a directory (default: %(default)s)")
        command.add_argument("--max-bytes", type=size_bytes_of, default=1 << 40, metavar="SIZE",
                             help="maximum size of all files together, for example 500G (default: 1T)")
        command.add_argument("--preview", action="store_true", help="show what would be queued; queue nothing")
        progress.add_wait_option(command)
    stages = client.add_command(
        commands, "stages", "list what jobs have staged to and from flash",
        client.showing("stage-state", StagingsAnswer.from_json, stage_lines, "job"),
        "List the last stagings of jobs: #BB_LUA stage_in and stage_out in their scripts.")
    stages.add_argument("job", nargs="?", default="", metavar="JOB", help="id of a job (default: all jobs)")


def nonempty_path(path: str) -> str:
    """A path that is not empty. A script with an unset variable must not move the current directory."""
    if not path:
        raise argparse.ArgumentTypeError("an empty path")
    return path


def size_bytes_of(text: str) -> int:
    """Parse a size in the notation of ``lfs``."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(chosen: argparse.Namespace) -> int:
    """Send the order. A relative path starts at the current directory."""
    path = chosen.path if chosen.path.startswith("/") else os.path.abspath(chosen.path)
    request = {"request": chosen.command, "path": path, "most_files": chosen.max_files,
               "most_bytes": chosen.max_bytes, "preview": chosen.preview}
    return progress.ask_and_wait(
        chosen, lambda: client.ask_and_show(chosen, request, OrderAnswer.from_json, lambda answer: answer.lines),
        waits=chosen.wait and not chosen.preview)


def stage_lines(answer: StagingsAnswer) -> list[str]:
    lines = []
    for each in answer.stagings:
        order = f"  {name_of(each.finding, OrderKind.STAGING)}" if each.finding else ""
        until = f", until {client.time_text(each.deadline_at)}" if each.open else ""
        lines.append(f"{client.time_text(each.created_at)}  job {each.job}  {each.user}  {each.state}{until}{order}  "
                     f"{each.sentence}")
    held = [f"tierd stages nothing now: {answer.held}"] if answer.held else []
    return [*(lines or ["no stagings"]), *held]
