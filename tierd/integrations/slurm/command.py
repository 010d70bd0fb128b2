"""``tierctl slurm``: one request of Slurm.

Slurm's plugin and scripts (``packaging/slurm``) start ``tierctl slurm`` with a JSON object on standard input, and read
one line: ``ok`` or ``failed``, and a sentence. The module imports little, because it runs for every job.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

from tierd.cli import client
from tierd.clock import SystemClock
from tierd.daemon.answers import JobSummaryAnswer, Json, PrepareAnswer, StagingsAnswer
from tierd.daemon.client import ControlError, ask

PATIENCE_SECONDS = 30.0
"""Time for which tierd may give no answer, for example while it restarts."""
MAX_PATIENCE_SECONDS = 600.0
MIN_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS = 2.0, 10.0
FIRST_POLL_SECONDS, LAST_POLL_SECONDS = 0.1, 2.0
"""Time between two requests for the state of a staging; it doubles from the first to the last."""
GRACE_SECONDS = 10.0
"""Time after its deadline in which tierd must have ended a staging."""
MAX_LINE = 400
"""Characters of the sentence for Slurm."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    slurm = commands.add_parser(
        "slurm", help="answer one request of Slurm's plugin or scripts",
        description="Read one request of Slurm as a JSON object from standard input, carry it out, and print one line: "
                    "ok or failed, and a sentence. packaging/slurm has the plugin and the scripts that use it. "
                    "Exit status: 0, even for failed; 1 if the request is malformed.")
    client.add_daemon_options(slurm)
    slurm.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    try:
        request = json.loads(sys.stdin.buffer.read().decode("utf-8", "surrogateescape"))
        if not isinstance(request, dict) or str(request.get("do")) not in HANDLERS:
            raise ValueError(f"a request is a JSON object whose \"do\" is one of {', '.join(HANDLERS)}")
        patience = min(max(0.0, float(request.get("patience_seconds", PATIENCE_SECONDS))), MAX_PATIENCE_SECONDS)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        print(line("failed", f"malformed request: {error}"))
        return 1
    connection = Connection(lambda: client.socket_of(chosen), SystemClock(), patience)
    try:
        print(HANDLERS[str(request["do"])](connection, request))
    except (ControlError, ValueError) as error:
        print(line("failed", str(error)))
    return 0


def line(word: str, sentence: str) -> str:
    r"""One line for Slurm: control characters and the quotes of its parser are replaced.

    >>> line("failed", 'no\nroom for "a=b"')
    "failed no room for 'a=b'"
    """
    plain = "".join(letter if letter.isprintable() else " " for letter in sentence).replace('"', "'")
    return f"{word} {plain[:MAX_LINE]}"


class Connection:
    """Asks tierd, and asks again while it restarts."""

    def __init__(self, socket: Callable[[], str], clock: SystemClock, patience_seconds: float) -> None:
        self._socket = socket
        self._patience_seconds = patience_seconds
        self.clock = clock

    def ask(self, request: Json) -> dict[str, object]:
        """The answer. Raises ControlError if tierd refuses the request, or does not answer for too long."""
        until = self.clock.monotonic() + self._patience_seconds
        while True:
            left = until - self.clock.monotonic()
            try:
                return ask(self._socket(), request, min(max(left, MIN_TIMEOUT_SECONDS), MAX_TIMEOUT_SECONDS))
            except ControlError as error:
                if not error.again or self.clock.monotonic() >= until:
                    raise
            self.clock.wait(1.0)


def stage(connection: Connection, request: Json) -> str:
    """Stage files, and wait until they are there, or until the deadline. Returns the line for Slurm."""
    wanted = {"request": "stage", "job": str(request.get("job")),
              **{name: request.get(name) for name in ("uid", "gid", "user", "stages")}}
    answer = StagingsAnswer.from_json(connection.ask(wanted))
    if answer.held:
        return line("failed", f"tierd stages nothing now: {answer.held}")
    wanted_ids = {each.id for each in answer.stagings}
    deadline = connection.clock.monotonic() + GRACE_SECONDS + max(
        (each.deadline_at - each.created_at for each in answer.stagings), default=0.0)
    poll = FIRST_POLL_SECONDS
    while any(each.open for each in answer.stagings):
        if connection.clock.monotonic() > deadline:
            teardown(connection, request)
            return line("failed", "tierd did not end the staging by its deadline")
        connection.clock.wait(poll)
        poll = min(2 * poll, LAST_POLL_SECONDS)
        answer = StagingsAnswer.from_json(connection.ask({"request": "stage-state", "job": wanted["job"]}))
        answer = StagingsAnswer(tuple(each for each in answer.stagings if each.id in wanted_ids))
    missing = wanted_ids - {each.id for each in answer.stagings}
    well = not missing and all(each.succeeded for each in answer.stagings)
    sentences = [each.sentence for each in answer.stagings]
    with suppress(ControlError):  # with earlier stagings and other acts for the job
        sentences = [*summary_of(connection, request)] or sentences
    return line("ok" if well else "failed", "; ".join(sentences) or "tierd no longer knows the staging")


def summary_of(connection: Connection, request: Json) -> tuple[str, ...]:
    """What tierd did for a job, in words. Raises ControlError."""
    asked = {"request": "job-summary", "job": str(request.get("job")), "user": request.get("user")}
    return JobSummaryAnswer.from_json(connection.ask(asked)).sentences


def epilog(connection: Connection, request: Json) -> str:
    """One line about what tierd did for a job that has ended; nothing after ``ok`` if it did nothing."""
    return line("ok", "; ".join(summary_of(connection, request)))


PREPARE_SECONDS = 5.0
"""Time for which a job waits for its directories to get their default layouts."""


def prolog(connection: Connection, request: Json) -> str:
    """Have tierd prepare the directories of a job that is about to start. Returns the line for Slurm."""
    asked = {"request": "prepare", **{name: request.get(name) for name in ("job", "name", "user", "uid", "directory")}}
    until = connection.clock.monotonic() + PREPARE_SECONDS
    while True:
        answer = PrepareAnswer.from_json(connection.ask(asked))
        if not answer.waiting or connection.clock.monotonic() >= until:
            break
        connection.clock.wait(FIRST_POLL_SECONDS)
    words = [*(f"{place} has the layout that helped before" for place in answer.ready),
             *(f"{place} gets the layout that helped before" for place in answer.waiting), *answer.why_not]
    return line("ok", "; ".join(words))


def teardown(connection: Connection, request: Json) -> str:
    connection.ask({"request": "stage-cancel", "job": str(request.get("job")), "uid": request.get("uid")})
    return line("ok", "")


def state(connection: Connection, _: Json) -> str:
    answer = StagingsAnswer.from_json(connection.ask({"request": "stage-state", "most": 1}))
    if answer.held:
        return line("failed", f"tierd stages nothing now: {answer.held}")
    return line("ok", "tierd stages files of jobs")


HANDLERS: Mapping[str, Callable[[Connection, Json], str]] = {
    "stage": stage, "teardown": teardown, "state": state, "prolog": prolog, "epilog": epilog}
