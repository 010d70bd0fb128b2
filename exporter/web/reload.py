"""The web configuration as it is now: looked at again at every connection, read again when a file has changed."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

from exporter.config import MistakesError
from exporter.web.settings import WebConfig, load

log = logging.getLogger("lustre-exporter")
_Mark = tuple[tuple[int, ...] | None, ...]


class Web:
    """The latest configuration that was good."""

    def __init__(self, path: Path) -> None:
        """Read it; ``MistakesError`` when it is not good."""
        self._path = path
        self._lock = threading.Lock()
        self._mark = _mark((path,))  # before reading: what changes meanwhile is then read again
        self._config = load(path)
        self._told: list[str] = []
        self.successful = True
        """Whether the latest reading was good."""
        self.denied = 0
        """Requests turned away for want of a right user and password."""

    def config(self) -> WebConfig:
        """What holds for a connection or request that comes now."""
        with self._lock:
            mark = _mark(self._config.files)
            if mark != self._mark or not self.successful:  # what a bad one names may turn up later
                self._mark = mark
                self._read()
            return self._config

    def read_again(self) -> bool:
        """Read it whether or not a file has changed; whether it is good. What is wrong is in the log."""
        with self._lock:
            self._mark, self._told = _mark(self._config.files), []
            self._read()
            return self.successful

    def deny(self) -> None:
        """Count a request that was turned away."""
        with self._lock:
            self.denied += 1

    def _read(self) -> None:
        try:
            config = load(self._path)
            if mistakes := self._opened(config):
                raise MistakesError(mistakes)
        except MistakesError as mistakes:
            if mistakes.sentences != self._told:
                wrong = "\n  ".join(["", *mistakes.sentences])
                log.error("cannot load the web configuration; the previous one stays in use: %s", wrong)
            self._told, self.successful = mistakes.sentences, False
            return
        if not self.successful:
            log.warning("web configuration loaded again without mistakes")
        self._config, self._told, self.successful = config, [], True

    def _opened(self, config: WebConfig) -> list[str]:
        """What a file, emptied by a slip or half written, would throw open. To open it on purpose takes a restart."""
        wrong = []
        if self._config.tls is not None and config.tls is None:
            wrong.append(f"{self._path}: tls_server_config is missing; restart the exporter to serve without TLS")
        if self._config.users is not None and config.users is None:
            wrong.append(f"{self._path}: basic_auth_users is missing; restart the exporter to serve without passwords")
        return wrong


def _mark(files: tuple[Path, ...]) -> _Mark:
    return tuple([_of(path) for path in files])


def _of(path: Path) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
