"""Settings of ``[sense.powerflex]``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from annotated_types import Ge, Gt

from tierd.config.sense import asks_http

_OST = re.compile(r"([^/\s]+-)?OST[0-9a-f]{4}")


@dataclass(frozen=True)
class PowerFlexSettings:
    """The gateway of a PowerFlex (VxFlex OS) system below the OSTs."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    url: str = ""
    """``https://gateway.example.org``. Empty: it is not used."""
    release: Literal[3, 4] = 4
    """Release of the gateway, which decides how tierd logs in: 3 (also VxFlex OS and ScaleIO), or 4."""
    user: str = ""
    """User that may only read (role ``Monitor``)."""
    password_file: str = ""
    """File with its password, mode 0600. Its certificate is always verified."""
    ca_file: str = ""
    """CA certificates (PEM) for the gateway's certificate; empty: the system's certificates."""
    volumes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Targets on each volume: ``{"ost0" = ["OST0000"]}``."""
    interval_seconds: Annotated[float, Ge(5)] = 30.0
    timeout_seconds: Annotated[float, Gt(0)] = 10.0
    """Limit of the time of one answer."""
    stale_seconds: Annotated[float, Gt(0)] = 180.0
    """Age of the last answer above which tierd does not know whether a rebuild runs."""
    min_bytes_per_second: Annotated[float, Gt(0)] = 50e6
    """Rate from which a rebalance counts as work that slows applications. A rebuild always counts."""
    max_bytes: Annotated[int, Gt(0)] = 32 << 20
    """Maximum length of an answer; a longer one is refused."""


def validated(settings: PowerFlexSettings) -> PowerFlexSettings:
    """The settings. Raises ValueError for an invalid or unsafe URL, and for invalid targets."""
    if not settings.url:
        return settings
    if not asks_http(settings.url) or not is_safe_url(settings.url):
        raise ValueError("url: give the whole address: https://gateway.example.org")
    if not settings.user or not settings.password_file:
        raise ValueError("user, password_file: the gateway needs both")
    named = [target for targets in settings.volumes.values() for target in targets]
    if wrong := [target for target in named if not _OST.fullmatch(target)]:
        raise ValueError(f"volumes: name targets as OST0000 or lustre-OST0000, not {wrong[0]!r}")
    if len(set(named)) < len(named):
        raise ValueError("volumes: each target is on one volume")
    return settings


def is_safe_url(url: str) -> bool:
    """Whether a password may be sent there: over TLS, or on this node.

    >>> [is_safe_url(url) for url in ("https://gw:443", "http://gw", "http://127.0.0.1:8080")]
    [True, False, True]
    """
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in {"localhost", "127.0.0.1", "::1"}
