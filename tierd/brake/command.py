"""``tierd brake``: the agent on an OSS, and the removal of its rules."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lustre.priority import run_promptly

if TYPE_CHECKING:  # these need the extra `tierd`
    from tierd.brake.agent import Ask, SetParameter
    from tierd.brake.rules import OssState, WantedRules

TIMEOUT_SECONDS = 3.0
"""Time limit of a request to one leader, and of a call of ``lctl``."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    brake = commands.add_parser(
        "brake", help="set and remove TBF rules on this OSS for the leader",
        description="Run the agent of an OSS: at the leader's request, it slows a job with a rule of Lustre's "
                    "token bucket filter (TBF). It changes only rules named tierd*_*. It removes them when it ends, "
                    "and within 30 s if the leader does not answer.")
    what = brake.add_mutually_exclusive_group(required=True)
    what.add_argument("--leader", action="append", metavar="URL",
                      help="address of tierd's port: https://tierd.example.org:9170; repeat it for a standby")
    what.add_argument("--release", action="store_true", help="remove all rules named tierd*_*, and exit")
    brake.add_argument("--user", default="", help="user for that port; its password is in --password-file")
    for name, content in (("password", "the password"), ("ca", "CA certificates of the leader"),
                          ("cert", "a client certificate"), ("key", "its key")):
        brake.add_argument(f"--{name}-file", default="", metavar="FILE", help=f"file with {content}")
    brake.add_argument("--lctl", default="lctl", help=argparse.SUPPRESS)
    brake.add_argument("--root", default="/", type=Path, help=argparse.SUPPRESS)
    brake.set_defaults(alone=run)


def run(chosen: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT, or remove the rules once. Returns the exit status."""
    run_promptly()  # a rule that comes or goes late slows jobs
    from lustre.parameters import Roots, Tree  # noqa: PLC0415
    from tierd.brake.agent import POLL_SECONDS, Agent, released  # noqa: PLC0415
    from tierd.clock import SystemClock  # noqa: PLC0415
    from tierd.daemon.systemd import Notifier  # noqa: PLC0415

    clock, notify, tree = SystemClock(), Notifier(os.environ), Tree(Roots.of(chosen.root / "proc", chosen.root / "sys"))
    if chosen.release:
        return 0 if released(tree, lctl(chosen.lctl)) else 1
    agent = Agent(os.uname().nodename, tree, lctl(chosen.lctl), asking(chosen), clock.monotonic)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: clock.wake())
    released(tree, lctl(chosen.lctl))  # of an earlier agent
    when_this_ends(lambda: released(tree, lctl(chosen.lctl)))
    notify(READY="1")
    while not clock.wait(POLL_SECONDS):
        agent.step()
        notify(WATCHDOG="1")
    return 0 if released(tree, lctl(chosen.lctl)) else 1


def when_this_ends(release: Callable[[], object]) -> None:
    """Call ``release`` in a process of its own when this one has ended, even by SIGKILL."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(writing)
        os.setsid()  # Ctrl-C is for the agent
        os.read(reading, 1)
        release()
        os._exit(0)
    os.close(reading)


def lctl(program: str) -> SetParameter:
    """Sets parameters with ``lctl``. Returns what it says about a failure, or ""."""
    def set_parameter(parameter: str, value: str) -> str:
        try:
            done = subprocess.run((program, "set_param", f"{parameter}={value}"), capture_output=True,  # noqa: S603
                                  check=False, text=True, errors="replace", timeout=TIMEOUT_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{program}: {error}"
        return " ".join(done.stderr.split()) or f"exit status {done.returncode}" if done.returncode else ""

    return set_parameter


def asking(chosen: argparse.Namespace) -> Ask:
    """Asks the leaders in turn; the one that answered last comes first. A standby refuses."""
    from tierd.brake.rules import WantedRules  # noqa: PLC0415
    from tierd.config.sense import ServerAccess  # noqa: PLC0415
    from tierd.daemon.answers import to_json  # noqa: PLC0415
    from tierd.sense.http_client import HttpClient, SourceError  # noqa: PLC0415

    client = HttpClient(ServerAccess(user=chosen.user, password_file=chosen.password_file, ca_file=chosen.ca_file,
                                     cert_file=chosen.cert_file, key_file=chosen.key_file), TIMEOUT_SECONDS)
    urls, kind = list(chosen.leader), "application/json"

    def ask(state: OssState) -> WantedRules:
        failed = []
        for url in tuple(urls):
            try:
                answer = client.send("POST", f"{url.rstrip('/')}/-/brake", (kind,), json.dumps(to_json(state)).encode(),
                                     {"Content-Type": kind})
            except SourceError as error:
                failed.append(str(error))
                continue
            urls.insert(0, urls.pop(urls.index(url)))
            return WantedRules.from_json(json.loads(answer.body))
        raise SourceError("; ".join(failed))

    return ask
