"""How servers and databases are reached: addresses, credentials and limits of the sources in ``[sense]``.

These are the settings alone, so that the configuration needs none of the code that reads the sources.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt


@dataclass(frozen=True)
class ServerAccess:
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
    max_bytes: Annotated[int, Gt(0)] = 64 << 20
    """An answer may be this long; a longer one is not believed."""


@dataclass(frozen=True)
class PrometheusSettings:
    """Where Prometheus is, and what of it is ours."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    url: str = ""
    """``http://prometheus:9090``, with its path prefix if it has one. Empty: it is not asked."""
    matchers: str = ""
    """More label matchers, for a Prometheus of several clusters: ``cluster="a"``."""
    lookback_seconds: Annotated[float, Ge(10)] = 75.0
    """How far back samples are asked for: two scrapes and a half."""
    batch_targets: Annotated[int, Gt(0)] = 16
    """Targets in one query. Fewer make smaller answers and more of them."""
    access: ServerAccess = field(default_factory=lambda: ServerAccess(max_bytes=32 << 20))
    learn_seconds: Annotated[float, Ge(0)] = 86400.0
    """How far back it is asked, once after a start, what jobs usually get: through the recording rules of
    ``alerts/rules/interference.yml``. 0: not at all."""
    learn_timeout_seconds: Annotated[float, Gt(0)] = 20.0
    """So long that may take in all; what is not whole by then is not used."""


@dataclass(frozen=True)
class RobinhoodSettings:
    """Where the database is. Grant ``SELECT`` on it to an account of its own, and nothing else."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    database: str = ""
    """``robinhood_lustre``. Empty: it is not asked."""
    host: str = "localhost"
    port: Annotated[int, Gt(0), Lt(65536)] = 3306
    socket: str = ""
    """Of a server on this node, in place of host and port."""
    user: str = "tierd"
    password_file: str = ""
    password_env: str = ""
    ca_file: str = ""
    """Certificates (PEM) that sign the server's; empty: no TLS."""
    max_files: Annotated[int, Gt(0)] = 5000
    """Of one directory, so many at most are asked for."""
    statement_seconds: Annotated[float, Gt(0)] = 5.0
    """The server breaks off a statement that takes longer."""
    stale_seconds: Annotated[float, Ge(0)] = 2 * 86400.0
    """Rows may be as old as this, by the database's own account of its last scan or changelog record."""
