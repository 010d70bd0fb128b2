"""Detectors: they turn windows and facts into findings with evidence. They are pure functions."""
