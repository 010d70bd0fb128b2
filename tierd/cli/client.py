"""Functions for all commands of tierctl: select the daemon, print its answer, format values.

Times, sizes, verdicts and evidence of findings look alike in all commands. The name of a value has its unit, which
decides the format.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from tierd.daemon.answers import Json
from tierd.daemon.client import ControlError, ask
from tierd.text import percent, printable, rate_text

_UNITS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_bytes_per_second", rate_text),
    ("_per_second", lambda v: f"{v:.1f}/s"),
    ("bytes", lambda v: f"{v / 2**20:.2f} MiB"),
    ("_bytes_per_file", lambda v: f"{v / 2**20:.2f} MiB"),
    ("share", percent),
    ("seconds", lambda v: f"{v:.0f} s"),
    ("usec", lambda v: f"{v / 1000:.1f} ms"),
    ("usec_per_rpc", lambda v: f"{v / 1000:.1f} ms"),
    ("slowdown", lambda v: f"{v:.2f} times"),
)
_UNIT_SUFFIXES = ("_bytes_per_second", "_per_second", "_bytes_per_file", "_bytes", "_seconds", "_usec")


def evidence_text(name: str, value: float) -> str:
    """Format one value of the evidence.

    >>> evidence_text("victim_bytes_per_second", 41.2e6), evidence_text("aggressor_read_share", 0.25)
    ('victim: 41.2 MB/s', 'aggressor read share: 25%')
    >>> evidence_text("slowdown", 1.5), evidence_text("quiet_windows", 12)
    ('slowdown: 1.50 times', 'quiet windows: 12')
    >>> evidence_text("aggressor_bytes_per_file", 1 << 20)
    'aggressor, per file: 1.00 MiB'
    """
    if name == "learnt_windows":
        return f"quiet windows from Prometheus' history: {value:g}"
    shown = next((form(value) for ending, form in _UNITS if name.endswith(ending)), f"{value:g}")
    if name.endswith("_bytes_per_file"):
        return f"{name.removesuffix('_bytes_per_file').replace('_', ' ')}, per file: {shown}"
    cut = next((c for c in _UNIT_SUFFIXES if name.endswith(c) and name != c.lstrip("_")), "")
    return f"{name.removesuffix(cut).replace('_', ' ')}: {shown}"


RUN = "/run/tierd"
A = TypeVar("A")


def add_daemon_options(command: argparse.ArgumentParser) -> None:
    """Add the options that select the daemon and the output format."""
    which = command.add_mutually_exclusive_group()
    which.add_argument("--fs", metavar="NAME", help=f"use the daemon with the socket {RUN}/NAME/tierd.sock")
    which.add_argument("--socket", metavar="PATH",
                       help=f"use the daemon with this socket (default: the only one in {RUN})")
    command.add_argument("--json", action="store_true", help="print the whole answer as JSON")


def socket_of(chosen: argparse.Namespace, run: Path = Path(RUN)) -> str:
    """The path of the daemon's socket. Raises ControlError if there are several and none is selected."""
    if chosen.socket:
        return str(chosen.socket)
    if chosen.fs:
        if "/" in chosen.fs or chosen.fs in {".", ".."}:
            raise ControlError(f"--fs takes the name of an instance, not {chosen.fs!r}")
        return str(run / chosen.fs / "tierd.sock")
    alone = run / "tierd.sock"
    try:
        several = sorted(p.parent.name for p in run.glob("*/tierd.sock"))
    except OSError:
        several = []
    if alone.exists() or not several:
        return str(alone)
    if len(several) == 1:
        return str(run / several[0] / "tierd.sock")
    raise ControlError(f"several tierd daemons run on this node; select one: --fs {' | '.join(several)}")


def ask_and_show(chosen: argparse.Namespace, request: Json, decode: Callable[[Json], A],
                 show: Callable[[A], list[str]], succeeded: Callable[[A], bool] = lambda _: True) -> int:
    """Send a request and print the answer; 1 if the daemon does not answer or refuses, or if the request fails.

    ``--json`` prints the answer as the daemon sent it. Errors go to standard error.
    """
    try:
        with spinner(str(request["request"])):
            found = ask(socket_of(chosen), request)
            answer = decode(found)
    except (ControlError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    well = succeeded(answer)
    print(json.dumps(found, indent=1) if chosen.json else "\n".join(map(printable, show(answer))),
          file=sys.stdout if well or chosen.json else sys.stderr)
    return 0 if well else 1


@contextmanager
def spinner(what: str) -> Iterator[None]:
    """Show a spinner on a terminal while the daemon computes a plan or scans directories."""
    if what not in {"plan", "promote", "demote", "undo", "report"} or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415 -- only on terminals

    with Console(stderr=True).status(f"{what} …"):
        yield


def positive(text: str) -> int:
    """Parse a count of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


def utc_time(seconds: float | None) -> str:
    """Format a time in UTC.

    >>> utc_time(1_795_000_000), utc_time(None)
    ('2026-11-18 11:06:40 UTC', 'never')
    """
    return "never" if not seconds else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(seconds: float) -> str:
    """Format a duration in seconds.

    >>> ago(42), ago(600), ago(7200), ago(200_000)
    ('42 s', '10 min', '2 h', '2 days')
    """
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
