"""The cost of calls and moves for a program on a client, such as tierd, apart from waits at the targets.

A call of the file system port makes a few system calls. Each system call takes processor time on its node, and most
send a request to a target, which waits in the queue of that target behind the requests of jobs. The model computes the
time at the target. This module has the processor times, for :class:`simulator.filesystem.Calls` and
:mod:`simulator.cluster`.

In a scenario::

    [costs]
    preset = "measured"                 # one of PRESETS; the default is "production"
    processors = 4                      # any field of CallCosts replaces the value of the preset
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from simulator.ranges import NotNegative

CALLER = "tierd.0"
"""Job id of the calls."""


@dataclass(frozen=True, slots=True)
class CallCosts:
    """Costs on one node and of the programs on it."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True}

    charged: bool = True
    """If false, calls return at once without a request, and moves take only their I/O and ``move_start_seconds``."""
    processors: NotNegative = 0.0
    """Processors of the node, shared with its jobs. 0: an unlimited node of its own."""
    call_processor_seconds: NotNegative = 0.0
    """Processor time of one system call, on its way to the target and back."""
    attributes_cached: bool = False
    """Whether the program shares the jobs' mount, so that attributes of their files come from the cache."""
    cached_processor_seconds: NotNegative = 0.0
    """Processor time of a stat from the cache."""
    default_processor_seconds: NotNegative = 0.0
    """Extra processor time of a default layout change, because clients in the directory release a lock."""
    record_processor_seconds: NotNegative = 0.0
    """Processor time of processing one changelog record."""
    kept_record_seconds: NotNegative = 0.0
    """Time to walk one record that no user has cleared, before the first new one. A real Lustre 2.17.57 on an idle
    emulated node took 68e-6 s."""
    look_seconds: NotNegative = 0.0
    """Time to read all counters on an idle node, apart from processor time."""
    look_processor_seconds: NotNegative = 0.0
    """Processor time to read and evaluate all counters."""
    move_start_seconds: NotNegative = 0.1
    """Time from the decision to move a file to its first read, apart from processor time."""
    move_processor_seconds: NotNegative = 0.0
    """Processor time to move one file: calls, checks and copying."""
    timeout_seconds: NotNegative = 600.0
    """Time after which a call to an absent target fails with ETIMEDOUT. (Real Lustre waits for ever.)"""


PRODUCTION = CallCosts(call_processor_seconds=20e-6, record_processor_seconds=10e-6, look_seconds=0.02)
"""Usual figures of a server of its own."""
MEASURED = CallCosts(
    processors=2.0, call_processor_seconds=0.0045, attributes_cached=True, cached_processor_seconds=0.0001,
    default_processor_seconds=0.04, record_processor_seconds=0.0006, look_processor_seconds=0.19,
    move_start_seconds=0.0, move_processor_seconds=0.17,
)  # fmt: skip
"""A real Lustre 2.17.57 on one emulated node, November 2026 (docs/calibration.md, section 4)."""
PRESETS: Mapping[str, CallCosts] = {
    "free": CallCosts(charged=False),
    "production": PRODUCTION,
    "measured": MEASURED,
    "measured_lease": replace(MEASURED, move_start_seconds=0.013, move_processor_seconds=0.19),
}  # fmt: skip
"""``measured`` moves with ``lfs migrate --non-block``, ``measured_lease`` with the lease engine."""
