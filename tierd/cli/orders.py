"""``tierctl promote`` and ``tierctl demote``: queue moves of files by name, within all checks and limits of tierd.

``tierctl stages`` shows what jobs of a scheduler ordered. ``tierctl drain-target`` empties an OST for its replacement.
"""

from __future__ import annotations

import argparse
import os
import sys

from lustre.layout.size import parse_size
from tierd.acts import OrderKind, name_of
from tierd.cli import client
from tierd.cli.client import number_from, positive
from tierd.daemon.answers import DESTINATIONS, DrainPlanAnswer, DrainRow, DrainsAnswer, OrderAnswer, StagingsAnswer
from tierd.text import bytes_text, count_of, duration_text, first_names, percent, quoted, rate_text


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
        client.add_wait_option(command)
    stages = client.add_command(
        commands, "stages", "list what jobs have staged to and from flash",
        client.showing("stage-state", StagingsAnswer.from_json, stage_lines, "job"),
        "List the last stagings of jobs: #BB_LUA stage_in and stage_out in their scripts.")
    stages.add_argument("job", nargs="?", default="", metavar="JOB", help="id of a job (default: all jobs)")
    drain = client.add_command(
        commands, "drain-target", "move all files from an OST to other targets of their pools", run_drain,
        "Find all files with an object on an OST, and move them to other targets of the same pool. Show first what "
        "would be done and the command that stops new objects there, and ask. Without a target, show the progress of "
        "all drains. [limits], maintenance windows, opt-outs and pins of users apply; modes do not. The journal "
        "records each move; tierctl undo reverses it.")
    drain.add_argument("target", nargs="?", metavar="TARGET", help="OST0004, or lustre-OST0004")
    which = drain.add_mutually_exclusive_group()
    which.add_argument("--dry-run", dest="preview", action="store_true",
                       help="count the files and bytes that would move, and those that could not; move nothing")
    for act, words in (("show", "show the progress of this drain"),
                       ("pause", "stop moving files; they are found again after --resume"),
                       ("resume", "continue after --pause, or look again for files that could not be moved"),
                       ("end", "end the drain, and allow new objects again where tierd stopped them")):
        which.add_argument(f"--{act}", dest="act", action="store_const", const=act, help=words)
    drain.add_argument("--yes", action="store_true", help="do not ask before it begins, for scripts")
    drain.set_defaults(act="begin", preview=False, wrong=drain.error)


def nonempty_path(path: str) -> str:
    """A path that is not empty. A script with an unset variable must not move the current directory."""
    if not path:
        raise argparse.ArgumentTypeError("the path is empty")
    return path


size_bytes_of = number_from(1, sys.maxsize, parse_size, "a size of at least 1 byte, as of lfs: 4096, 64M, 2T")


def run(chosen: argparse.Namespace) -> int:
    """Send the order. A relative path starts at the current directory."""
    path = chosen.path if chosen.path.startswith("/") else os.path.abspath(chosen.path)
    request = {"request": chosen.command, "path": path, "most_files": chosen.max_files,
               "most_bytes": chosen.max_bytes, "preview": chosen.preview}
    return client.ask_and_wait(
        chosen, lambda: client.ask_and_show(chosen, request, OrderAnswer.from_json, lambda answer: answer.lines,
                                            lambda answer: answer.succeeded),
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


def run_drain(chosen: argparse.Namespace) -> int:
    """Send the request, and print the drains. Ask before a drain begins."""
    if not chosen.target and (chosen.preview or chosen.yes or chosen.act not in {"begin", "show"}):
        chosen.wrong("name the target; without one, all drains are shown and nothing is changed")
    if not chosen.target or chosen.act == "show":
        request = {"request": "drains", "target": chosen.target or ""}
    else:
        request = {"request": "drain-target", "target": chosen.target, "act": chosen.act, "preview": chosen.preview}
        if chosen.act == "begin" and not (chosen.preview or chosen.yes) and (status := ask_first(chosen)):
            return status
    return client.ask_and_show(chosen, request, DrainsAnswer.from_json, lambda answer: [
        line for drain in answer.drains for line in lines_of(drain, answer.time)] or ["no drains"])


NOT_ASKED = 2
"""Exit status without a terminal and without ``--yes``, as for wrong options."""


def ask_first(chosen: argparse.Namespace) -> int:
    """Show what a drain would do, and ask whether to begin. 0 if it may begin, otherwise the exit status."""
    if chosen.json or not sys.stdin.isatty():
        print(f"this would move all files off {chosen.target}, and there is no terminal to ask: --yes begins, "
              "--dry-run counts the files, --show shows a drain. Nothing was changed", file=sys.stderr)
        return NOT_ASKED
    request = {"request": "drain-target", "target": chosen.target, "act": "plan"}
    if status := client.ask_and_show(chosen, request, DrainPlanAnswer.from_json, plan_lines):
        return status
    print("Begin? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return 0
    print("nothing was changed")
    return 1


def plan_lines(answer: DrainPlanAnswer) -> list[str]:
    r"""What a drain would do.

    >>> plan = DrainPlanAnswer(target="l-OST0004", used_bytes=72 * 10**9, pools={"hdd": ("l-OST0002",)}, dry_run=False,
    ...                        bytes_per_second=20e6, stop_command="lctl set_param …=0", held="")
    >>> print("\n".join(plan_lines(plan)))
    drain of l-OST0004: move all files with an object there (72.0 GB used)
      files of pool hdd: to l-OST0002
      at most 20.0 MB/s ([limits]), so it takes 60 min or longer
      new objects: stop them first, on each MDS: lctl set_param …=0
    """
    moves = "only count, because tierd is in a dry run," if answer.dry_run else "move"
    lines = [f"drain of {answer.target}: {moves} all files with an object there ({bytes_text(answer.used_bytes)} used)"]
    lines += [f"  files of pool {pool}: to {first_names(others, 8)}" for pool, others in answer.pools.items()]
    takes = duration_text(answer.used_bytes / answer.bytes_per_second)
    lines.append(f"  at most {rate_text(answer.bytes_per_second)} ([limits]), so it takes {takes} or longer")
    if answer.stop_command:
        lines.append(f"  new objects: stop them first, on each MDS: {answer.stop_command}")
    return [*lines, f"  no moves begin now: {answer.held}"] if answer.held else lines


def lines_of(drain: DrainRow, now: float) -> list[str]:
    begun = f"begun by {drain.by} {duration_text(now - drain.begun_at)} ago"
    lines = [f"{drain.name}, {begun}: {drain.state}"]
    lines.append(f"  pass {drain.passes}: {count_of(drain.examined, 'entry', 'entries')} examined"
                 + (f", up to {quoted(drain.position)}" if drain.position else "")
                 + f"; {count_of(drain.found_files, 'file')} found ({bytes_text(drain.found_bytes)} there)")
    if not drain.preview:
        lines.append(f"  {count_of(drain.files_moved, 'file')} moved, {drain.queued_moves} queued")
    if drain.waits_for:
        lines.append(f"  waits: {drain.waits_for}")
    lines.append(_space_line(drain))
    for left in drain.left:
        names = ", ".join(quoted(name) for name in left.examples[:3])
        lines.append(f"  left: {left.count}: {left.sentence}" + (f": {names}" if names else ""))
    if drain.phase == "ended" and not drain.preview:
        return [*lines, f"  new objects: to allow them again, on each MDS: {drain.give_back_command}"]
    if drain.stop_command and not (drain.preview or drain.phase == "previewed"):
        lines.append("  new objects: this node cannot see that all MDTs stopped them; on each MDS: "
                     f"{drain.stop_command}")
    return lines


def _space_line(drain: DrainRow) -> str:
    if drain.used_bytes is None:
        return "  its space is not known yet, or the target cannot be reached"
    words = f"  {bytes_text(drain.used_bytes)} used, {bytes_text(drain.used_bytes_at_begin)} at the beginning"
    if drain.used_bytes_at_begin:
        words += f" ({percent(max(0.0, 1 - drain.used_bytes / drain.used_bytes_at_begin))} freed)"
    if drain.seconds_left is not None:
        words += f"; about {duration_text(drain.seconds_left)} left at this rate"
    return words
