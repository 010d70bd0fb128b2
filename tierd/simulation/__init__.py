"""Runs tierd on a simulated cluster in virtual time, to show what a policy does to a workload."""
