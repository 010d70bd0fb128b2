"""The supervisor of the service: reloads it when its settings change, and restarts it when its journal fails.

While no service can start, the supervisor tries again within a minute, as somebody may have mended the cause; a reload
makes it try at once. tierd changes nothing meanwhile, and logs each new reason once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from httpserver.config import WebConfigFile
from tierd.act.journal.connection import JournalError
from tierd.config.load import ConfigurationError, load
from tierd.config.settings import Settings
from tierd.daemon.systemd import HeartbeatSource
from tierd.detect.history import History
from tierd.text import printable

log = logging.getLogger("tierd")
MAX_SKIPPED_CYCLES = 11
"""Cycles, about a minute of them."""


class SupervisedService(HeartbeatSource, Protocol):
    """What is kept; :class:`tierd.daemon.service.Service`."""

    def cycle(self) -> str:
        """One cycle, in a sentence. Raises JournalError."""

    @property
    def history(self) -> History:
        """What it has seen."""

    def take_over(self, history: History) -> None:
        """Go on from what another has seen."""

    def close(self) -> None:
        """End it."""


class Supervisor:
    """Holds the service, and the settings in force."""

    def __init__(self, path: Path, settings: Settings, start: Callable[[Settings], SupervisedService],
                 web_config: WebConfigFile | None = None) -> None:
        """Start the first service. Raises OSError or ValueError if that fails.

        ``web_config`` is the web configuration of all services that ``start`` makes. There is one for the whole
        process, because it never drops TLS or passwords.
        """
        self._path = path
        self._web_config = web_config
        self._start = start
        self.settings = settings
        self._service: SupervisedService | None = start(settings)
        self._seen: History | None = None
        """What the last service had seen when it ended, where the next one sees the same."""
        self._told = ""
        self._failures = self._skip = 0
        """Cycles in a row that failed, and cycles to let pass before the next try."""

    def cycle(self) -> str:
        """One cycle; a sentence about the state."""
        if self._service is None and self._skip:
            self._skip -= 1
            return f"nothing is done: {self._told}"
        if self._service is None and not self._begin():
            return f"nothing is done: {self._told}"
        assert self._service is not None
        try:
            told = self._service.cycle()
        except JournalError as error:
            self._end()
            self._skip = min(2**self._failures - 1, MAX_SKIPPED_CYCLES)  # each try has its words in the log
            self._failures += 1
            self._tell(error_text(error))
            return f"nothing is done: {self._told}"
        self._failures = 0
        if self._told:  # not before: on a full disk a service may well start, and fail at its first word
            log.info("at work again; %s", self._baselines())
            self._told = ""
        return told

    def renew(self) -> None:
        """A sign of life to other movers; waits for as long as the file system does not answer."""
        service = self._service
        if service is not None:
            service.renew()

    def beat(self) -> bool:
        """Whether we live: False when a cycle hangs. Never waits for the file system."""
        service = self._service
        return service is None or service.beat()

    def reload(self) -> None:
        """Reload the configuration and the web configuration. If one is bad, its previous one stays in force."""
        self._skip = 0
        if self._web_config is not None:
            self._web_config.reload()
        try:
            wanted = load(self._path)
        except (ConfigurationError, OSError) as error:
            log.error("configuration not reloaded, the old one stays in force: %s", error)
            return
        if wanted.web.config_file != self.settings.web.config_file:
            log.error("configuration not reloaded, the old one stays in force: a change of web.config_file needs a "
                      "restart")
            return
        if wanted == self.settings:
            log.info("configuration read again: nothing has changed")
            return
        self._end()
        before, self.settings, seen = self.settings, wanted, self._seen
        if not same_sources(before, wanted):
            self._seen = None
        try:
            self._started(wanted)
        except (OSError, ValueError) as error:
            log.error("configuration not reloaded, the old one is in force again: %s", error_text(error))
            self.settings, self._seen = before, seen
            self._begin()
        else:
            log.info("configuration reloaded; %s", self._baselines())

    def close(self) -> None:
        """End the service, where there is one."""
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def _end(self) -> None:
        """The same, and keep what it has seen."""
        if self._service is not None:
            self._seen = self._service.history
        self.close()

    def _started(self, settings: Settings) -> None:
        self._service = self._start(settings)
        if self._seen is not None:
            self._service.take_over(self._seen)

    def _baselines(self) -> str:
        return "baselines are learned anew" if self._seen is None else "what streams usually get is still known"

    def _begin(self) -> bool:
        try:
            self._started(self.settings)
        except (OSError, ValueError) as error:
            self._tell(error_text(error))
            return False
        return True

    def _tell(self, why: str) -> None:
        if why != self._told:
            log.error("%s; nothing is done, and tierctl has no answer, until that is mended; it is tried again within "
                      "a minute", why)
        self._told = why


def same_sources(before: Settings, wanted: Settings) -> bool:
    """Whether what was seen under the one settings is what would have been seen under the others."""
    def view(settings: Settings) -> object:
        return settings.filesystem, settings.sense, settings.own_jobs, settings.history_seconds

    return view(before) == view(wanted)


def error_text(error: Exception) -> str:
    """An error for people, with the file it is about.

    >>> error_text(FileNotFoundError(2, "No such file or directory", "/mnt/a")), error_text(ValueError("odd"))
    ('/mnt/a: No such file or directory', 'odd')
    """
    name, words = getattr(error, "filename", None), getattr(error, "strerror", None)
    return printable(f"{name}: {words}" if name and words else str(error))
