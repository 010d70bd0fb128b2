"""Waiting for a call with a deadline: calls run in daemon threads, and each is a ``concurrent.futures.Future``.

A call to a server that is down may never return. The threads of ``ThreadPoolExecutor`` are joined when the interpreter
ends, so one such call would keep the process alive; daemon threads do not.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DaemonExecutor(Executor):
    """Runs calls in at most ``max_threads`` daemon threads; a thread ends when no call waits.

    Wait with ``concurrent.futures.wait(futures, timeout)``. ``Future.cancel`` cancels a call that has not started.
    """

    def __init__(self, name: str, max_threads: int | None = None) -> None:
        """``name`` is the name of the threads. Without ``max_threads``, each call starts immediately."""
        self._name = name
        self._max_threads = max_threads
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[object], Callable[[], object]]] = deque()
        self._threads = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run ``fn`` in a thread. Raises RuntimeError when the system grants no thread."""
        future: Future[T] = Future()
        with self._lock:
            while self._waiting and self._waiting[0][0].cancelled():
                self._waiting.popleft()
            if self._max_threads is None or self._threads < self._max_threads:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
                self._threads += 1
            self._waiting.append((future, partial(fn, *args, **kwargs)))  # type: ignore[arg-type]
        return future

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                future, call = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 -- it is raised where the result is read
                    future.set_exception(error)
            del future, call  # the thread must not keep references while it waits for the lock
