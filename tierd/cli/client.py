"""Functions for all commands of tierctl: select the daemon, print its answer, format and colour values, and wait.

``--wait`` waits until the queue is empty or held. A file or pipe gets no progress bar. Times, sizes, verdicts and
evidence of findings look the same in all commands. The name of a value has its unit, which decides the format.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import MAXYEAR, UTC, datetime, tzinfo

from tierd.daemon.client import ControlError, ask
from tierd.text import printable

TYPE_CHECKING = False  # tierctl starts faster without typing
if TYPE_CHECKING:
    from threading import Event
    from typing import TextIO, TypeVar

    from tierd.daemon.answers import ChangeAnswer, Json, StatusAnswer

    A = TypeVar("A")
    C = TypeVar("C", bound=ChangeAnswer)
RUN = "/run/tierd"


def add_daemon_options(command: argparse.ArgumentParser, default: object = argparse.SUPPRESS) -> None:
    """Add the options that select the daemon and the output format.

    They stand before or after the command. Those after it have no default, which would hide those before it.
    """
    which = command.add_mutually_exclusive_group()
    which.add_argument("--fs", metavar="NAME", help=f"use the daemon with the socket {RUN}/NAME/tierd.sock",
                       default=default)
    which.add_argument("--socket", metavar="PATH",
                       help=f"use the daemon with this socket (default: the only one in {RUN})", default=default)
    switch = default if default is argparse.SUPPRESS else False
    command.add_argument("--json", action="store_true", help="print the whole answer as JSON", default=switch)
    command.add_argument("--utc", action="store_true", help="show and read times in UTC (default: local time)",
                         default=switch)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, words: str,
                run: Callable[[argparse.Namespace], int], description: str = "") -> argparse.ArgumentParser:
    """Add a command that asks the daemon. ``words`` are its line in the list of commands."""
    command = commands.add_parser(name, help=words, description=description or f"{words[0].upper()}{words[1:]}.")
    add_daemon_options(command)
    command.set_defaults(run=run)
    return command


def socket_of(chosen: argparse.Namespace, run: str = RUN) -> str:
    """The path of the daemon's socket. Raises ControlError if there are several and none is selected.

    An empty name, as of an unset variable, is a slip: the only daemon may not be the one that was meant.
    """
    if chosen.socket is not None and chosen.fs is not None:
        raise ControlError("give --fs or --socket, not both")
    if chosen.socket is not None:
        if not chosen.socket:
            raise ControlError("--socket takes the path of a socket, not ''")
        return str(chosen.socket)
    if chosen.fs is not None:
        if "/" in chosen.fs or chosen.fs in {"", ".", ".."}:
            raise ControlError(f"--fs takes the name of an instance, not {chosen.fs!r}")
        return f"{run}/{chosen.fs}/tierd.sock"
    several: list[str] = []
    with suppress(OSError):  # if the folder may not be read, connecting reports it
        several = sorted(name for name in os.listdir(run) if os.path.exists(f"{run}/{name}/tierd.sock"))
    if not several or os.path.exists(f"{run}/tierd.sock"):
        return f"{run}/tierd.sock"
    if len(several) == 1:
        return f"{run}/{several[0]}/tierd.sock"
    raise ControlError(f"several tierd daemons run on this node; select one: --fs {' | '.join(several)}")


def ask_and_show(chosen: argparse.Namespace, request: Json, decode: Callable[[Json], A],
                 show: Callable[[A], list[str]], succeeded: Callable[[A], bool] = lambda _: True) -> int:
    """Send a request and print the answer; 1 if the daemon does not answer or refuses, or if the request fails.

    ``--json`` prints the answer as the daemon sent it. Errors go to standard error.
    """
    try:
        found = ask(socket_of(chosen), request)
        answer = understood(decode, found)
    except ControlError as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        if request["request"] not in MAY_GO_ON:
            raise
        print(f"interrupted; tierd may still carry out {request['request']}: see tierctl status and tierctl history",
              file=sys.stderr)
        return INTERRUPTED
    well = succeeded(answer)
    out = sys.stdout if well or chosen.json else sys.stderr
    if chosen.json:
        print(json.dumps(found, indent=1), file=out)
    else:
        lines = map(printable, show(answer))
        out.write("".join(f"{line}\n" for line in (map(coloured, lines) if colours(out, os.environ) else lines)))
    return 0 if well else 1


def showing(request: str, decode: Callable[[Json], A], show: Callable[[A], list[str]], *arguments: str,
            succeeded: Callable[[A], bool] = lambda _: True) -> Callable[[argparse.Namespace], int]:
    """What a command runs that sends one request, with those of its arguments that are given, and prints the answer."""
    return lambda chosen: ask_and_show(
        chosen, {"request": request, **{name: value for name in arguments
                                        if (value := getattr(chosen, name)) is not None}}, decode, show, succeeded)


def changing(request: str, decode: Callable[[Json], C], *arguments: str) -> Callable[[argparse.Namespace], int]:
    """What a command runs that changes something."""
    return showing(request, decode, lambda answer: answer.lines, *arguments, succeeded=lambda answer: answer.succeeded)


INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""
MAY_GO_ON = frozenset({"undo", "promote", "demote", "pause", "drain", "resume", "drain-target"})
"""Requests that change something: the daemon does not stop when the client does."""
RED, YELLOW, GREEN, BOLD = "1;31", "33", "32", "1"
COLOURS: tuple[tuple[str, str], ...] = (
    (r"^(?:tierd )?(?:PAUSED|CANNOT|OUTSIDE ITS WINDOW|DRAINING)\b.*|^STALLED: .*|^paused: .*", RED),
    (r"dry run: nothing is changed|^  not done: ", YELLOW),
    (r"^finding F\d+|^F\d+\b", "1;33"),
    (r"(?<=  )(?:failed|doubtful|not undone)(?=  )|^not undone: ", RED),
    (r"(?<=  )(?:done|helped; kept)(?=  |$)|^undone: ", GREEN),
    (r"(?<=  )(?:refused|gave-way|gone|interrupted|dry-run|already)(?=  )", YELLOW),
    (r"^[A-Z][\w ]*:$|^ID +time .*", BOLD),
)
"""What is coloured in the lines of all commands, and how (codes of SGR)."""


def colours(out: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether to colour the output: on a terminal, unless NO_COLOR is set (no-color.org); FORCE_COLOR always does."""
    if environment.get("NO_COLOR"):
        return False
    return bool(environment.get("FORCE_COLOR")) or (out.isatty() and environment.get("TERM") != "dumb")


def coloured(line: str) -> str:
    r"""A line of output with colours.

    >>> coloured("finding F3: slow"), coloured("no findings")
    ('\x1b[1;33mfinding F3\x1b[0m: slow', 'no findings')
    """
    for pattern, code in COLOURS:
        line = re.sub(pattern, f"\x1b[{code}m\\g<0>\x1b[0m", line)
    return line


@contextmanager
def bar(title: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show a progress bar; the function it yields sets how much of the total is done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 -- only on terminals
    from rich.progress import Progress  # noqa: PLC0415 -- only on terminals

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)


INTERVAL_SECONDS = 1.0


def add_wait_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--wait", action="store_true",
                         help="wait until the queue is empty; exit status 1 if it is held")


def ask_and_wait(chosen: argparse.Namespace, ask_it: Callable[[], int], *, waits: bool) -> int:
    """Send a request; if it succeeds and ``waits`` is set, wait for the queue. Returns the exit status."""
    code = ask_it()
    return wait_for_queue(chosen) if waits and not code else code


def wait_for_queue(chosen: argparse.Namespace, nap: Event | None = None) -> int:
    """Poll the status; 0 when the queue is empty, 1 when it is held or tierd does not answer, 130 after Ctrl-C."""
    from threading import Event  # noqa: PLC0415 -- not for commands that do not wait

    nap = nap or Event()
    try:
        status = status_of(chosen)
        whole = moves_left(status)
        with bar("moves", float(whole)) as progress:
            while (moves_left(status) or status.under_way_moves) and not status.held:
                nap.wait(INTERVAL_SECONDS)
                status = status_of(chosen)
                whole = max(whole, moves_left(status))
                progress(float(whole - moves_left(status)))
    except ControlError as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped waiting; tierd continues", file=sys.stderr)
        return INTERRUPTED
    if status.held:
        print(printable(f"held: {status.held}; {moves_left(status)} left in the queue"), file=sys.stderr)
        return 1
    if not chosen.json:
        print("the queue is empty; tierctl history shows what became of it")
    return 0


def status_of(chosen: argparse.Namespace) -> StatusAnswer:
    """The queue of the daemon. Raises ControlError."""
    from tierd.daemon.answers import StatusAnswer  # noqa: PLC0415 -- tierctl submit needs none

    return understood(StatusAnswer.from_json, ask(socket_of(chosen), {"request": "status"}))


def understood(decode: Callable[..., A], *found: Json) -> A:
    """What is decoded of answers. Raises ControlError if they lack something, as after an upgrade of tierctl alone."""
    try:
        return decode(*found)
    except ValueError as error:
        raise ControlError(f"tierd runs another release than tierctl: restart it ({error})") from error


def moves_left(status: StatusAnswer) -> int:
    return status.waiting_moves + status.waiting_orders


def number_from(least: float, to: float, read: Callable[[str], float], words: str) -> Callable[[str], float]:
    """A parser of an option's number in this range, in which "nan" and infinite numbers are not."""
    def parse(text: str) -> float:
        try:
            number = read(text)
        except ValueError:
            number = least - 1
        if not least <= number <= to:
            raise argparse.ArgumentTypeError(f"{text!r} is not {words}")
        return number

    return parse


positive = number_from(1, sys.maxsize, int, "a whole number of at least 1")
seconds = number_from(0, 31_622_400, float, "a number of seconds from 0 to a year")


ZONE: ContextVar[tzinfo | None] = ContextVar("ZONE", default=None)
"""The time zone of the output; None is local time."""


def user_lines(users: Mapping[str, str], **jobs: str) -> list[str]:
    """A line with the users of jobs, by the roles of the jobs; none if no job id names a user.

    >>> user_lines({"ior.1002": "alice (1002)", "fio.7": "7"}, aggressor="fio.7", victim="ior.1002")
    ['users: aggressor 7, victim alice (1002)']
    >>> user_lines({}, aggressor="4711", victim="4712")
    []
    """
    known = [f"{role} {users[job]}" for role, job in jobs.items() if job in users]
    return [f"users: {', '.join(known)}"] if known else []


def time_text(seconds: float | None, zone: tzinfo | None = None) -> str:
    """Format a time with its zone.

    >>> time_text(1_795_000_000, UTC), time_text(None)
    ('2026-11-18 11:06:40 UTC', 'never')
    """
    return "never" if not seconds else local_time(seconds, zone).strftime("%Y-%m-%d %H:%M:%S %Z")


def local_time(seconds: float, zone: tzinfo | None = None) -> datetime:
    """A time in ``zone``, or else in the zone of the output."""
    return datetime.fromtimestamp(seconds, zone or ZONE.get()).astimezone(zone or ZONE.get())


_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def moment(text: str, now: float, zone: tzinfo | None = None) -> float:
    """Parse a duration before ``now``, or a time in the zone of the output. Raises ValueError.

    >>> moment("2h", 10_000.0), moment("1970-01-01T01:00", 0.0, UTC), moment("1970-01-01T01:00Z", 0.0)
    (2800.0, 3600.0, 3600.0)
    """
    span = _SPAN.fullmatch(text)
    if span:
        then = now - float(span[1]) * _SECONDS[span[2]]
        if then < 0:
            raise ValueError(f"{text!r} reaches back before 1970")
        return then
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a duration (6h, 7d) nor a time (2026-11-20T08:00)") from None
    if not 1970 <= time.year < MAXYEAR:  # the last year has hours that other time zones cannot express
        raise ValueError(f"{text!r} is not between 1970 and {MAXYEAR - 1}")
    return (time if time.tzinfo else time.replace(tzinfo=zone or ZONE.get())).timestamp()


def duration_seconds(text: str) -> float:
    """Parse a duration of an option.

    >>> duration_seconds("2h"), duration_seconds("1.5d")
    (7200.0, 129600.0)
    """
    span = _SPAN.fullmatch(text)
    if span is None or float(span[1]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: 90s, 30m, 2h, 1d")
    return float(span[1]) * _SECONDS[span[2]]


def moment_option(text: str) -> str:
    """A time or duration of an option, which is read when the zone is known."""
    try:
        moment(text, datetime.now(UTC).timestamp(), UTC)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
