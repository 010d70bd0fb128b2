"""Fixtures of tests.pki, for every test of this folder."""

from tests.pki import authority, pki, tls_text, users_text, web_file

__all__ = ["authority", "pki", "tls_text", "users_text", "web_file"]
