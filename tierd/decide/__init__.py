"""Policies: they turn findings, candidates and free space into plans. They are pure functions and never act."""
