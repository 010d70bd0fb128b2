"""Measurements of the exporter: ratios within one run, never milliseconds compared with a limit."""
