"""The only place where the exporter looks at a clock."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds of some steadily running clock; only differences mean anything."""

monotonic: Clock = time.monotonic

wall: Clock = time.time
"""Seconds since 1970, as the kernel stamps what it counts."""
