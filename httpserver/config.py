"""``--web.config.file``, in the format of Prometheus' exporter-toolkit, and its reload when a file changes.

Every connection checks the files for changes. If the new content has a mistake, the last good configuration stays in
use. A reload never removes TLS or passwords; their removal needs a restart.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from httpserver.basic_auth import NO_BCRYPT, Users, bcrypt_hash
from httpserver.tls import FILES, TlsConfig, load_tls, tls_settings
from httpserver.yaml_document import ANY, Document, flag, of_text, one_of

log = logging.getLogger("httpserver")


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
    document = Document(path, _settings(path.parent))
    tls = document.values.get("tls_server_config") or {}
    hashes = document.values.get("basic_auth_users") or {}
    headers = (document.values.get("http_server_config") or {}).get("headers") or {}
    secured = load_tls(tls, lambda name, why: document.wrong(("tls_server_config", name), why)) if tls else None
    if hashes and find_spec("bcrypt") is None:
        document.wrong(("basic_auth_users",), NO_BCRYPT)
    if mistakes := document.mistakes():
        raise ConfigError(mistakes)
    files = (path, *[tls[name] for name in FILES if name in tls])
    return WebConfig(secured, Users(hashes) if hashes else None, tuple(headers.items()), files)


def _settings(folder: Path) -> dict[str, Any]:
    """What the file may set: the kinds of :class:`Document`."""
    one_line = of_text(lambda text: text if text.isascii() and text.isprintable() else None,
                       "must be one line of ASCII characters")  # fmt: skip
    return {
        "tls_server_config": tls_settings(folder),
        "http_server_config": {
            "http2": flag,  # without effect: this server uses HTTP/1.1
            "headers": {
                **dict.fromkeys(("Strict-Transport-Security", "X-XSS-Protection", "Content-Security-Policy"), one_line),
                "X-Content-Type-Options": one_of(("nosniff",)),
                "X-Frame-Options": one_of(("deny", "sameorigin")),
            },
        },
        "basic_auth_users": {ANY: bcrypt_hash},
    }


class WebConfigFile:
    """A web configuration file, and the last good configuration read from it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._mark = file_states((path,))
        self._config = load_web_config(path)
        self._reported: list[str] = []
        self.successful = True
        """Whether the last load succeeded."""
        self.denied = 0
        """Requests denied because of missing or wrong credentials."""

    def config(self) -> WebConfig:
        """Return the configuration in use, after a reload if a file has changed."""
        with self._lock:
            if file_states(self._config.files) != self._mark or not self.successful:  # a missing file may appear later
                self._read()
            return self._config

    def reload(self) -> bool:
        """Reload, even if no file has changed. Logs mistakes and returns whether the load succeeded."""
        with self._lock:
            self._reported = []
            self._read()
            return self.successful

    def deny(self) -> None:
        with self._lock:
            self.denied += 1

    def _read(self) -> None:
        self._mark = file_states(self._config.files)  # before reading, so that a change meanwhile causes a reload
        try:
            config = load_web_config(self.path)
            old = self._config
            lost = {"tls_server_config is missing; restart to serve without TLS": old.tls and not config.tls,
                    "basic_auth_users is missing; restart to serve without passwords": old.users and not config.users}
            if wrong := [f"{self.path}: {sentence}" for sentence, is_lost in lost.items() if is_lost]:
                raise ConfigError(wrong)
        except ConfigError as mistakes:
            if mistakes.sentences != self._reported:
                log.error("cannot load the web configuration; the previous one stays in use: %s",
                          "; ".join(mistakes.sentences))
            self._reported, self.successful = mistakes.sentences, False
            return
        if not self.successful:
            log.warning("web configuration loaded again without mistakes")
        self._config, self._reported, self.successful = config, [], True


def file_states(files: tuple[Path, ...]) -> tuple[tuple[int, ...] | None, ...]:
    """What changes when a file is written or replaced; None for a file that is not there."""
    return tuple([_file_state(path) for path in files])


def _file_state(path: Path) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
