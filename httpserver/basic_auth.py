"""``basic_auth_users``: users and their passwords, stored as bcrypt hashes.

The server remembers a correct password as a hash keyed by a secret of this process, because each bcrypt check costs a
tenth of a second of CPU. The check of a wrong password takes equally long whether the user exists or not. Passwords are
checked one at a time, so guessing uses at most one CPU and does not delay users whose password is remembered.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
import threading
from collections.abc import Mapping

from httpserver.yaml_document import of_text

NO_BCRYPT = "checking passwords needs bcrypt, which is not installed: pip install bcrypt"
_HASH = re.compile(r"\$2[aby]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}")
bcrypt_hash = of_text(lambda text: text if _HASH.fullmatch(text) else None,
                      "is not a bcrypt hash; make one with: htpasswd -nBC 10 ''")


class Users:
    """The users and the check of their passwords."""

    def __init__(self, hashes: Mapping[str, str]) -> None:
        self._hashes = {user: stored.encode() for user, stored in hashes.items()}
        self._decoy = next(iter(self._hashes.values()))
        self._key = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}
        self._turn = threading.Lock()

    def allowed(self, user: str, password: bytes) -> bool:
        """Check a password. Raises ValueError if it contains a NUL."""
        import bcrypt  # noqa: PLC0415 - needed where there are users

        fingerprint = hmac.digest(self._key, password, "sha256")
        if self._remembered(user, fingerprint):
            return True
        stored = self._hashes.get(user)
        with self._turn:
            if self._remembered(user, fingerprint):  # a concurrent request has checked the password
                return True
            # takes as long without such a user; bcrypt uses 72 bytes, and the library refuses more
            right = bcrypt.checkpw(password[:72], stored or self._decoy)
            if right and stored is not None:
                self._right[user] = fingerprint
            return right and stored is not None

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
        except ValueError:  # not base64 or not UTF-8, too
            return None
