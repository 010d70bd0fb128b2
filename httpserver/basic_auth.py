"""``basic_auth_users``: users and their passwords, stored as bcrypt hashes.

The server remembers a correct password as a hash keyed by a secret of this process, because each bcrypt check costs a
tenth of a second of CPU. The check of a wrong password takes equally long whether the user exists or not. Passwords are
checked one at a time, so guessing uses at most one CPU and does not delay users whose password is remembered.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
import threading
from collections.abc import Mapping

from httpserver.yaml_document import Section

NO_BCRYPT = "checking passwords needs bcrypt, which is not installed: pip install bcrypt"
MAX_PASSWORD_BYTES = 72
"""Number of bytes that bcrypt uses. The library refuses longer passwords, which other tools truncate."""
_HASH = re.compile(r"\$2[aby]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}")


class Users:
    """The users and the check of their passwords."""

    def __init__(self, hashes: Mapping[str, str]) -> None:
        self._hashes = {user: stored.encode() for user, stored in hashes.items()}
        self._decoy = next(iter(self._hashes.values()))
        self._key = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}
        self._turn = threading.Lock()

    def allowed(self, user: str, password: bytes) -> bool:
        fingerprint = hmac.digest(self._key, password, "sha256")
        if self._remembered(user, fingerprint):
            return True
        stored = self._hashes.get(user)
        with self._turn:
            if self._remembered(user, fingerprint):  # a concurrent request has checked the password
                return True
            right = _check(password, stored or self._decoy)  # as long without such a user
            if not right or stored is None:
                return False
            self._right[user] = fingerprint
            return True

    def _remembered(self, user: str, fingerprint: bytes) -> bool:
        return hmac.compare_digest(self._right.get(user, b""), fingerprint)

    def user(self, header: str) -> str | None:
        """The user of an ``Authorization`` header with the correct password; None for any other header."""
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            user, colon, password = base64.b64decode(token.strip(), validate=True).partition(b":")
            name = user.decode()
            return name if colon and self.allowed(name, password) else None
        except (binascii.Error, ValueError):
            return None


def _check(password: bytes, stored: bytes) -> bool:
    import bcrypt  # noqa: PLC0415 - needed where there are users

    try:
        return bcrypt.checkpw(password[:MAX_PASSWORD_BYTES], stored)
    except ValueError:  # the password contains a NUL
        return False


def load_users(section: Section) -> Users | None:
    """Load the users of ``basic_auth_users``; None without users. Records mistakes."""
    hashes = section.values
    for user, stored in hashes.items():
        if not _HASH.fullmatch(stored):
            section.wrong(user, "is not a bcrypt hash; make one with: htpasswd -nBC 10 ''")
    if not hashes:
        return None
    try:
        import bcrypt  # noqa: F401, PLC0415 - so that its absence is reported at the start
    except ImportError:
        section.mistakes.add(section.keys, NO_BCRYPT)
    return Users(hashes)
