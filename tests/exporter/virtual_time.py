"""Time for scrapes of collectors that hang, without waiting for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from exporter import clock


class VirtualTime:
    """Time passes only while all unfinished collectors hang."""

    def __init__(self, hanging: Callable[[], set[str]]) -> None:
        """``hanging`` names the collectors that hang at this moment."""
        self._hanging = hanging
        self._others = set(threading.enumerate())
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def wait(self, future: Future[Any], seconds: float) -> bool:
        while not clock.wait(future, 0.001):
            threads = {thread.name for thread in threading.enumerate() if thread not in self._others}
            out = {name.removeprefix("collector-") for name in threads if name.startswith("collector-")}
            if out <= self._hanging() and not future.done():
                self.now += seconds
                return False
        return True
