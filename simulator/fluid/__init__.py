"""The same cluster without single events: rates of jobs that share targets, constant from one change to the next.

For clusters of thousands of clients. A job is a closed loop of operations; each waits for the targets it needs; a
target serves who waits in the order of arrival, so all wait as long as it takes for nobody to ask for more than there
is. What an I/O costs a device comes from the same descriptions as in the event model. What needs single events is not
here: bursts, tails of latency, locks of single objects, read-ahead.
"""

from __future__ import annotations

from simulator.fluid.cluster import FluidCluster

__all__ = ["FluidCluster"]
