"""What work from a mount costs whoever does it, tierd for instance, beside what it waits for at the targets.

A call of the file system port is a few system calls. Each takes processor time of the node it is made on, and most are
a request to a target, which stands in the queue of that target behind those of the jobs. The second part follows from
the model; here are the figures of the first, for :class:`simulator.calls.Calls` and :mod:`simulator.cluster`.

In a scenario::

    [costs]
    preset = "measured"                 # one of PRESETS; "production" where nothing is said
    processors = 4                      # any of the fields of CallCosts instead of what the preset has
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

CALLER = "tierd.0"
"""Job id of whoever makes the calls."""


@dataclass(frozen=True, slots=True)
class CallCosts:
    """Figures of one node, and of the programs on it."""

    source: str = ""
    """Where they come from."""
    charged: bool = True
    """False: calls answer at once and ask no target, moves take the time of their I/O and ``move_start_seconds``."""
    processors: float = 0.0
    """Of the node, shared with the processes of jobs on it. 0: a node of its own, with enough."""
    busy_share: float = 1.0
    """Share of a processor that a process of a job keeps busy."""
    call_seconds: float = 0.0
    """What every system call to a target takes beside that and beside the target itself: a way that is slow."""
    call_processor_seconds: float = 0.0
    """Processor time of one system call, on its way to the target and back."""
    attributes_cached: bool = False
    """Whether it works on the mount of the jobs: attributes of their files are in its cache, and no target is asked."""
    cached_processor_seconds: float = 0.0
    """Processor time of a status from that cache."""
    default_processor_seconds: float = 0.0
    """The same of changing a default layout, beside the calls: all who make files there give a lock up for it."""
    record_processor_seconds: float = 0.0
    """The same of taking one changelog record in."""
    look_seconds: float = 0.0
    """From asking for all counters to having them, on an idle node, beside processor time."""
    look_processor_seconds: float = 0.0
    """Processor time of reading all counters, and of thinking about them."""
    move_start_seconds: float = 0.1
    """From the decision to move a file to its first read, beside processor time: a process starts, takes a lease."""
    move_processor_seconds: float = 0.0
    """Processor time of moving one file: the engine's calls, checks, copying."""
    patience_seconds: float = 600.0
    """A call to a target that does not come back ends with ETIMEDOUT after so long. (Lustre waits for ever.)"""


PRODUCTION = CallCosts(
    "usual figures of a server of its own: 20 us for a system call, 10 us for a record, 20 ms to read all counters",
    call_processor_seconds=20e-6, record_processor_seconds=10e-6, look_seconds=0.02,
)  # fmt: skip
MEASURED = CallCosts(
    "a real Lustre 2.17.57 on one emulated node, November 2026, moving with lfs migrate --non-block "
    "(docs/calibration.md, section 4)",
    processors=2.0, call_processor_seconds=0.0045, attributes_cached=True, cached_processor_seconds=0.0001,
    default_processor_seconds=0.04, record_processor_seconds=0.0006, look_processor_seconds=0.19,
    move_start_seconds=0.0, move_processor_seconds=0.17,
)  # fmt: skip
PRESETS: Mapping[str, CallCosts] = {
    "free": CallCosts("nothing is charged", charged=False),
    "production": PRODUCTION,
    "measured": MEASURED,
    "measured_lease": replace(MEASURED, source=MEASURED.source.replace("lfs migrate --non-block", "the lease engine"),
                              move_start_seconds=0.013, move_processor_seconds=0.19),
}  # fmt: skip
