"""robinhood as an integration."""

from __future__ import annotations

from collections.abc import Iterator

from tierd.integrations.protocol import Integration, Site
from tierd.integrations.robinhood.database import MySqlConnection, Robinhood, RobinhoodSettings


def start(settings: RobinhoodSettings, site: Site) -> Robinhood:
    return Robinhood(settings, lambda: MySqlConnection(settings, site.environment), site.clock)


def contradictions(settings: RobinhoodSettings) -> Iterator[tuple[str, str]]:
    """A user of the database without a password, and an address that is not used."""
    local = bool(settings.socket) or settings.host in {"localhost", "127.0.0.1", "::1"}
    if not (local or settings.password_file or settings.password_env):
        yield "user", f"the user {settings.user!r} has no password: set password_file"
    if settings.socket and settings.host != "localhost":
        yield "host", "robinhood.socket is used and host is ignored: remove one of the two"


INTEGRATION = Integration(
    settings=RobinhoodSettings, defaults=RobinhoodSettings(), configured=lambda settings: bool(settings.database),
    start=start, contradictions=contradictions)
