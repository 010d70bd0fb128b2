"""``--web.config.file``, in the format of Prometheus' exporter-toolkit, and its reload when a file changes.

Every connection checks the files for changes. If the new content has a mistake, the last good configuration stays in
use. A reload never removes TLS or passwords; their removal needs a restart.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path

from httpserver.basic_auth import Users, load_users
from httpserver.tls import TLS_SETTINGS, TlsConfig, load_tls, tls_files
from httpserver.yaml_document import ANY, Mistakes, Section

log = logging.getLogger("httpserver")
SETTINGS = {
    "tls_server_config": TLS_SETTINGS,
    "http_server_config": {"http2": bool, "headers": {ANY: str}},
    "basic_auth_users": {ANY: str},
}
"""``http2`` is accepted without effect: this server uses HTTP/1.1."""
SETTABLE_HEADERS: dict[str, tuple[str, ...]] = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
"""Headers that may be added, with the valid values if they are limited."""
_VISIBLE = re.compile(r"[\x20-\x7e]+")


class ConfigError(ValueError):
    """Mistakes in the configuration, one sentence each."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


@dataclass(frozen=True, slots=True)
class WebConfig:
    """TLS, users, and additional headers of every response."""

    tls: TlsConfig | None = None
    users: Users | None = None
    headers: tuple[tuple[str, str], ...] = ()
    files: tuple[Path, ...] = ()
    """The files that were read. A change of any file causes a reload."""


def load_web_config(path: Path) -> WebConfig:
    """Read the file and the files that it names. Raises ConfigError with all mistakes."""
    notes = Mistakes(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None
    whole = notes.read(data, SETTINGS)
    secured = whole.section("tls_server_config")
    config = WebConfig(
        load_tls(secured, path.parent),
        load_users(whole.section("basic_auth_users")),
        _headers(whole.section("http_server_config").section("headers")),
        (path, *tls_files(secured, path.parent)),
    )
    if wrong := notes.sentences():
        raise ConfigError(wrong)
    return config


def _headers(section: Section) -> tuple[tuple[str, str], ...]:
    for name, value in section.values.items():
        if name not in SETTABLE_HEADERS:
            section.wrong(name, f"is not supported; supported headers: {', '.join(SETTABLE_HEADERS)}")
        elif SETTABLE_HEADERS[name] and value not in SETTABLE_HEADERS[name]:
            section.wrong(name, f"must be {' or '.join(SETTABLE_HEADERS[name])}")
        elif not _VISIBLE.fullmatch(value):
            section.wrong(name, "must be one line of ASCII characters")
    return tuple(section.values.items())


class WebConfigFile:
    """A web configuration file, and the last good configuration read from it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._mark = file_states((path,))  # before reading, so that a change meanwhile causes a reload
        self._config = load_web_config(path)
        self._reported: list[str] = []
        self.successful = True
        """Whether the last load succeeded."""
        self.denied = 0
        """Requests denied because of missing or wrong credentials."""

    def config(self) -> WebConfig:
        """Return the configuration in use, after a reload if a file has changed."""
        with self._lock:
            mark = file_states(self._config.files)
            if mark != self._mark or not self.successful:  # a missing file may appear later
                self._mark = mark
                self._read()
            return self._config

    def reload(self) -> bool:
        """Reload, even if no file has changed. Logs mistakes and returns whether the load succeeded."""
        with self._lock:
            self._mark, self._reported = file_states(self._config.files), []
            self._read()
            return self.successful

    def deny(self) -> None:
        with self._lock:
            self.denied += 1

    def _read(self) -> None:
        try:
            config = load_web_config(self.path)
            if mistakes := self._removed(config):
                raise ConfigError(mistakes)
        except ConfigError as mistakes:
            if mistakes.sentences != self._reported:
                log.error("cannot load the web configuration; the previous one stays in use: %s",
                          "; ".join(mistakes.sentences))
            self._reported, self.successful = mistakes.sentences, False
            return
        if not self.successful:
            log.warning("web configuration loaded again without mistakes")
        self._config, self._reported, self.successful = config, [], True

    def _removed(self, config: WebConfig) -> list[str]:
        """List TLS or users that the new configuration lacks, because the file may be incomplete or empty."""
        wrong = []
        if self._config.tls is not None and config.tls is None:
            wrong.append(f"{self.path}: tls_server_config is missing; restart to serve without TLS")
        if self._config.users is not None and config.users is None:
            wrong.append(f"{self.path}: basic_auth_users is missing; restart to serve without passwords")
        return wrong


def file_states(files: tuple[Path, ...]) -> tuple[tuple[int, ...] | None, ...]:
    """What changes when a file is written or replaced; None for a file that is not there."""
    return tuple([_file_state(path) for path in files])


def _file_state(path: Path) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
