"""What taught tierd most about a loss, and the words for it. This module imports next to nothing: tierctl uses it."""

from __future__ import annotations

from enum import IntEnum


class Carrier(IntEnum):
    """What taught most about a loss."""

    ARRIVAL = 1
    """The stream was seen before the other job came."""
    LOAD = 2
    """The stream gets less when the other job does more."""
    HISTORY = 3
    """Prometheus has what the stream got before."""
    DEVICE_TIME = 4
    """What the work of the jobs costs the targets, and nothing else."""


CARRIERS = {
    Carrier.ARRIVAL: "the time before the aggressor came",
    Carrier.LOAD: "how it varies with the aggressor's load",
    Carrier.HISTORY: "Prometheus' history",
    Carrier.DEVICE_TIME: "device time alone",
}
"""What the loss is known by."""
