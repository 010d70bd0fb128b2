"""The flow model: a cluster without single events. Jobs are rates that are constant between two changes.

Use it for clusters with thousands of clients. A job is a closed loop of operations, and each operation waits for its
targets. A target serves requests in the order of arrival, so waits grow until the demand fits its capacity. The cost of
an I/O on a device comes from the same settings as in the event model. The model has no features that need single
events: bursts, latency tails, locks of single objects, read-ahead.
"""
