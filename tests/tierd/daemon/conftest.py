"""Fixtures of tests.tierd.port, for every test of this folder."""

from tests.tierd.port import serving

__all__ = ["serving"]
