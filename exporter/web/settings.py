"""``--web.config.file`` as a whole, in the form of Prometheus' exporter-toolkit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from exporter.config import MistakesError
from exporter.web import document
from exporter.web.document import Notes, Section
from exporter.web.tls import KNOWN as TLS_KNOWN
from exporter.web.tls import Tls, files, tls
from exporter.web.users import Users, users

KNOWN = ("tls_server_config", "http_server_config", "basic_auth_users")
HEADERS: dict[str, tuple[str, ...]] = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
"""Headers that may be added, and their values where only some make sense."""
_VISIBLE = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True, slots=True)
class WebConfig:
    """Who may ask, over what, and what every answer carries besides."""

    tls: Tls | None = None
    users: Users | None = None
    headers: tuple[tuple[str, str], ...] = ()
    files: tuple[Path, ...] = ()
    """All that was read; when one of them changes, it is read again."""


def load(path: Path) -> WebConfig:
    """Read the file and those it names; ``MistakesError`` holds everything that is wrong."""
    notes = Notes(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MistakesError([f"{path}: cannot be read: {error.strerror}"]) from None
    whole = document.read(data, notes, KNOWN)
    secured = whole.section("tls_server_config", TLS_KNOWN)
    http = whole.section("http_server_config", ("http2", "headers"))
    http.flag("http2", default=True)  # known, and without effect: this server speaks HTTP/1.1
    config = WebConfig(
        tls(secured, path.parent),
        users(whole.section("basic_auth_users")),
        _headers(http.section("headers")),
        (path, *files(secured, path.parent)),
    )
    if wrong := notes.sentences():
        raise MistakesError(wrong)
    return config


def _headers(section: Section) -> tuple[tuple[str, str], ...]:
    for name, value in section.items():
        if name not in HEADERS:
            section.mistake(name, f"is not supported; supported headers: {', '.join(HEADERS)}")
        elif HEADERS[name] and value not in HEADERS[name]:
            section.mistake(name, f"must be {' or '.join(HEADERS[name])}")
        elif not _VISIBLE.fullmatch(value):
            section.mistake(name, "must be one line of ASCII characters")
    return tuple(section.items())
