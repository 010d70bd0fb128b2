"""Run a command. The only place of tierd's engines that starts another process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. ``code`` is negative for a signal."""

    code: int
    errors: str


Runner = Callable[[Sequence[str]], Finished]


_TIE = ("setpriv", "--pdeathsig", "KILL")
_TRY_SECONDS = 5.0


def tie() -> tuple[str, ...]:
    """Words before a command so that it ends with us, even when we are killed; none where setpriv(1) cannot do that.

    Started by hand and killed, tierd would leave its ``lfs migrate`` at work, beside the tierd that comes next and
    finds in the journal that nothing goes on. (Under systemd the whole control group is killed. util-linux has the
    option since 2.33.)
    """
    try:
        known = runner(_TRY_SECONDS)((*_TIE, "true")).code == 0
    except OSError:
        known = False
    return _TIE if known else ()


def runner(timeout_seconds: float, more: Mapping[str, str] | None = None, before: Sequence[str] = ()) -> Runner:
    """Runs commands to their end, or kills them after that time: a killed ``lfs migrate`` leaves every file whole.

    ``more`` is added to their environment, ``before`` are words before each.
    """

    def run(command: Sequence[str]) -> Finished:
        environment = {**os.environ, "LC_ALL": "C", **(more or {})}
        try:
            done = subprocess.run(  # noqa: S603 -- no shell: what looks like a command in a file name stays a name
                [*before, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                check=False, timeout=timeout_seconds, env=environment)
        except subprocess.TimeoutExpired as error:
            words = (error.stderr or b"").decode("utf-8", "surrogateescape")
            return Finished(-9, f"{words}killed after {timeout_seconds:g} s")
        return Finished(done.returncode, done.stderr.decode("utf-8", "surrogateescape"))

    return run
