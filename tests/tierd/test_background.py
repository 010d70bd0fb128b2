"""Calls in daemon threads, as futures."""

import subprocess
import sys
import threading
import weakref
from concurrent.futures import Future, wait

from hypothesis import given
from hypothesis import strategies as st

from tierd.background import DaemonExecutor

HANGING = """
import threading
from concurrent.futures import wait
from tierd.background import DaemonExecutor
future = DaemonExecutor("hanging").submit(threading.Event().wait)
wait({future}, timeout=0.01)
print(future.done())
"""


def test_a_call_that_never_returns_does_not_keep_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 4))
def test_every_call_runs_once_and_never_more_than_allowed(raises: list[bool], max_threads: int) -> None:
    executor, lock = DaemonExecutor("t", max_threads), threading.Lock()
    running = most = 0

    def call(fails: bool) -> bool:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
        if fails:
            raise ValueError
        return True

    futures = [executor.submit(call, fails) for fails in raises]
    assert not wait(futures, 30).not_done
    assert [future.exception() is not None for future in futures] == raises
    assert most <= max_threads


def test_a_queued_call_can_be_cancelled_while_another_hangs() -> None:
    executor, begun, back = DaemonExecutor("t", 1), threading.Event(), threading.Event()
    ran: list[int] = []

    def hang() -> bool:
        begun.set()
        return back.wait(60)

    hanging = executor.submit(hang)
    assert begun.wait(60)
    try:
        cancelled = []
        for number in range(100):
            waiting: Future[None] = executor.submit(ran.append, number)
            assert waiting.cancel()
            cancelled.append(weakref.ref(waiting))
        assert [call() for call in cancelled[:-1]] == [None] * 99, "cancelled calls are not kept"
    finally:
        back.set()
    assert hanging.result(30)
    executor.submit(ran.append, -1).result(30)
    assert ran == [-1]
