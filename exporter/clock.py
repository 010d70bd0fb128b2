"""The only place where the exporter looks at a clock, or waits by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds of some steadily running clock; only differences mean anything."""

Wait = Callable[[threading.Event, float], bool]
"""Waits for an event for so many seconds at the most; whether it is set."""

monotonic: Clock = time.monotonic

wait: Wait = threading.Event.wait

wall: Clock = time.time
"""Seconds since 1970, as the kernel stamps what it counts."""
