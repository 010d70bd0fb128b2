"""Fixtures of tests.pki, for every test of this folder."""

from tests.pki import authority, pki, web_file

__all__ = ("authority", "pki", "web_file")
