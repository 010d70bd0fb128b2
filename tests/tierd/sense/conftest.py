"""Fixtures of other test rooms that these tests use."""

from tests.pki import authority

__all__ = ["authority"]
