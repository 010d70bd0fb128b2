"""Detectors: pure functions that turn windows and facts into findings with evidence."""
