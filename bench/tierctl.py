"""``python -m bench.tierctl [TIMES [PYTHON]]``: processor time of tierctl, as a multiple of ``python3 -c pass``.

Each command runs as a process of its own and asks a control socket that has its answer ready. The interpreters run in
turn, so that other work on the machine disturbs all alike. An environment with an editable installation starts slowly;
``PYTHON`` may name an interpreter without one, such as /usr/bin/python3.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from statistics import median

from tests.operation.page_answers import ANSWERS
from tierd.daemon.answers import FindingsAnswer, to_json
from tierd.daemon.control import ControlServer

RUNNING = {"paused": "", "held": "", "draining": "", "waiting_moves": 0, "waiting_bytes": 0}
REQUESTS = {**ANSWERS, "pause": RUNNING, "findings": to_json(FindingsAnswer((), looked=True))}
COMMANDS = (["status"], ["findings"], ["explain", "F1"], ["history"], ["pause"])


def seconds(command: list[str]) -> float:
    """Processor seconds of a process, in user mode and in the kernel."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return usage.ru_utime + usage.ru_stime


def main(times: int = 20, python: str = sys.executable) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = ControlServer(f"{folder}/s", lambda request: REQUESTS[str(request["request"])])
        try:
            asked = {" ".join(each): [python, "-m", "tierd.cli.tierctl", *each, "--socket", f"{folder}/s"]
                     for each in COMMANDS}
            rounds = [{name: seconds(command) for name, command in {"": [python, "-c", "pass"], **asked}.items()}
                      for _ in range(times)]
        finally:
            server.close()
    start = median(each[""] for each in rounds)
    print(f"python3 -c pass: {1000 * start:.0f} ms of processor time")
    for name in asked:
        print(f"tierctl {name}: {median(each[name] for each in rounds) / start:.1f} ×")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 20, *sys.argv[2:3])
