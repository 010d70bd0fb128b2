"""Reads what Lustre reports and calls its functions. Needs the standard library only."""

__version__ = "0.2.0"
