"""Reads what Lustre reports and calls its functions. Needs the standard library only."""

__version__ = "0.1.0"
