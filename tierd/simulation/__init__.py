"""tierd on the simulated cluster, in virtual time: what would this policy do to my workload?"""
