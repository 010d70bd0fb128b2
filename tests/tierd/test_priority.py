"""What watches gets the processor before applications, what copies files does not."""

from __future__ import annotations

import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

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
