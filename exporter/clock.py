"""The exporter's clocks and time limits: no other module of the exporter uses the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

Clock = Callable[[], float]
"""Seconds of a monotonic clock. Only differences are meaningful."""

Wait = Callable[[Future[Any], float], bool]
"""Waits for a future up to a number of seconds, and returns whether it is done."""

monotonic: Clock = time.monotonic


def wait(future: Future[Any], seconds: float) -> bool:
    """See ``Wait``. A TimeoutError of the call itself is a result: reading a parameter may raise one."""
    try:
        future.exception(seconds)
    except TimeoutError:
        return False
    return True


wall: Clock = time.time
"""Seconds since 1970, as in the kernel's time stamps."""
