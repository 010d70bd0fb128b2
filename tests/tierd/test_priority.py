"""What watches gets the processor before applications, what copies files does not."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lustre.priority import ORDINARY_NICE, PROMPT_NICE, run_as_applications, run_promptly
from tierd.act.movers.parallel import prepare_mover_thread


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may raise a priority")
def test_threads_and_commands_of_a_prompt_thread_are_prompt_but_moves_are_ordinary() -> None:
    before = nice()

    def watch() -> list[int]:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 5)  # whatever the tests have
        run_promptly()
        with ThreadPoolExecutor(1, initializer=prepare_mover_thread) as movers:
            command = movers.submit(subprocess.run, ["nice"], capture_output=True, check=True).result()
            return [nice(), int(command.stdout), movers.submit(nice).result()]

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(watch).result() == [PROMPT_NICE, ORDINARY_NICE, ORDINARY_NICE]
    assert nice() == before, "of the other threads of the process"


def test_a_lower_priority_that_an_administrator_gave_to_moves_stays() -> None:
    def lowered() -> int:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)
        run_as_applications()
        return nice()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lowered).result() == 15


def session_group() -> list[str]:
    """The words of the session's group: none without such groups in the kernel, and none in a control group."""
    autogroup = Path("/proc/self/autogroup")
    return autogroup.read_text(encoding="ascii").split() if autogroup.exists() else []


@pytest.mark.skipif(os.geteuid() != 0 or not session_group(),
                    reason="only root may raise a priority, and only some kernels group threads by session")
@pytest.mark.parametrize("own", [True, False])
def test_a_new_session_gets_the_priority_and_that_of_a_shell_keeps_its_own(own: bool) -> None:
    script = "from lustre.priority import run_promptly as r; r(); print(open('/proc/self/autogroup').read())"
    before = session_group()[-1]
    found = subprocess.run([sys.executable, "-c", script], start_new_session=own, capture_output=True, check=True)
    assert found.stdout.split()[-1] == (b"-10" if own else before.encode())
