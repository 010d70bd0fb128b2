"""How a server is reached: who asks, with which secret, and whose certificates are trusted."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from annotated_types import Gt


class SourceError(OSError):
    """A source that did not answer, or not with what it should: nothing of it is believed."""


@dataclass(frozen=True)
class Access:
    """How a server is reached: who asks, and whose certificates are trusted."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    user: str = ""
    """For basic authentication, with one of the passwords below."""
    password_file: str = ""
    password_env: str = ""
    """Name of an environment variable; a file is better, since the environment of a process can be seen."""
    token_file: str = ""
    """Holds a bearer token. Read anew for every request, as tokens are renewed."""
    token_env: str = ""
    ca_file: str = ""
    """Certificates (PEM) that sign the server's; empty: those of the system."""
    cert_file: str = ""
    """Our own, where the server asks for one."""
    key_file: str = ""
    most_bytes: Annotated[int, Gt(0)] = 64 << 20
    """An answer may be this long; a longer one is not believed."""


def secret(file: str, variable: str, environment: Mapping[str, str], what: str) -> str:
    """A password or token from a file or, without, from the environment; "" where neither is named.

    Raises SourceError naming the place. The line's end is not part of a secret.
    """
    if file:
        try:
            found = Path(file).read_text(encoding="utf-8").strip("\r\n")
        except (OSError, ValueError) as error:
            raise SourceError(f"{what}: {file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        where = file
    elif variable:
        found, where = environment.get(variable, ""), f"the environment variable {variable}"
    else:
        return ""
    if not found:
        raise SourceError(f"{what}: {where} is empty or not there")
    if not found.isprintable():  # never the secret itself: errors are logged
        raise SourceError(f"{what}: {where} holds more than one line, or what cannot be printed")
    return found


def credentials(access: Access, environment: Mapping[str, str]) -> dict[str, str]:
    """The header that says who asks; none where nobody need to. Raises SourceError."""
    if access.user:
        password = secret(access.password_file, access.password_env, environment, "password")
        word = base64.b64encode(f"{access.user}:{password}".encode()).decode()
        return {"Authorization": f"Basic {word}"}
    token = secret(access.token_file, access.token_env, environment, "token")
    return {"Authorization": f"Bearer {token}"} if token else {}


def tls_of(access: Access) -> ssl.SSLContext:
    """Whom we trust, and who we are, for TLS. Raises SourceError naming the files."""
    try:
        context = ssl.create_default_context(cafile=access.ca_file or None)
        if access.cert_file:
            context.load_cert_chain(access.cert_file, access.key_file or None, lambda: "")
    except (OSError, ValueError) as error:
        names = ", ".join(filter(None, (access.ca_file, access.cert_file, access.key_file)))
        raise SourceError(f"TLS: {names}: {getattr(error, 'strerror', None) or error}") from error
    return context
