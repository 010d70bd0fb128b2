"""The flow model: the same cluster without single events. Jobs are rates that are constant between two changes.

For clusters of thousands of clients. A job is a closed loop of operations; each waits for the targets it needs; a
target serves requests in the order of arrival, so all wait until the demand fits its capacity. The cost of an I/O on a
device comes from the same settings as in the event model. Not modelled is what needs single events: bursts, latency
tails, locks of single objects, read-ahead.
"""

from __future__ import annotations

from simulator.fluid.cluster import FluidCluster

__all__ = ["FluidCluster"]
