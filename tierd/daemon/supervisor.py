"""The supervisor of the service: reloads it when its settings change, and restarts it when its journal fails.

While no service can start, the supervisor tries again within a minute, because an administrator may have repaired the
cause. A reload makes it try at once. Meanwhile tierd changes nothing, and logs each new reason once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from httpserver.config import WebConfigFile
from tierd.act.journal.connection import JournalError
from tierd.config.load import ConfigurationError, load
from tierd.config.settings import Settings
from tierd.daemon.loop import Memory
from tierd.daemon.service import Service
from tierd.text import printable

log = logging.getLogger("tierd.daemon")
MAX_SKIPPED_CYCLES = 11
"""Limit on the cycles between two tries: about a minute."""


class Supervisor:
    """Holds the service, and the settings in force."""

    def __init__(self, path: Path, settings: Settings, start: Callable[[Settings], Service],
                 web_config: WebConfigFile | None = None) -> None:
        """Start the first service. Raises OSError or ValueError if that fails.

        ``web_config`` is the web configuration of all services that ``start`` makes. There is one for the whole
        process, because it never drops TLS or passwords.
        """
        self._path = path
        self._web_config = web_config
        self._start = start
        self.settings = settings
        self._service: Service | None = start(settings)
        self._seen: Memory | None = None
        """What the last service has seen; None if the next one has other sources."""
        self._reported = ""
        self._failures = self._skip = 0
        """Number of failed cycles in a row, and number of cycles to skip before the next try."""

    def cycle(self) -> str:
        """Run one cycle. Returns a sentence about the state."""
        if self._service is None and self._skip:
            self._skip -= 1
            return f"tierd does nothing: {self._reported}"
        if self._service is None and not self._begin():
            return f"tierd does nothing: {self._reported}"
        assert self._service is not None
        try:
            sentence = self._service.cycle()
        except JournalError as error:
            self._end()
            self._skip = min(2**self._failures - 1, MAX_SKIPPED_CYCLES)  # each try writes to the log
            self._failures += 1
            self._report(error_text(error))
            return f"tierd does nothing: {self._reported}"
        self._failures = 0
        if self._reported:  # a full disk lets a service start and fails its first write
            log.info("at work again; %s", self._baselines())
            self._reported = ""
        return sentence

    def renew(self) -> None:
        """Renew the claim. It waits for as long as the file system does not answer."""
        service = self._service
        if service is not None:
            service.renew()

    def beat(self) -> bool:
        """False if a cycle hangs. It never waits for the file system."""
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
            log.info("configuration reloaded: no setting has changed")
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
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def _end(self) -> None:
        """Stop the service, and keep what it has seen."""
        if self._service is not None:
            self._seen = self._service.memory
        self.close()

    def _started(self, settings: Settings) -> None:
        self._service = self._start(settings)
        if self._seen is not None:
            self._service.take_over(self._seen)

    def _baselines(self) -> str:
        return "tierd learns baselines again" if self._seen is None else "baselines are kept"

    def _begin(self) -> bool:
        try:
            self._started(self.settings)
        except (OSError, ValueError) as error:
            self._report(error_text(error))
            return False
        return True

    def _report(self, why: str) -> None:
        if why != self._reported:
            log.error("%s; until this is repaired, tierd does nothing and tierctl gets no answer; tierd retries within "
                      "a minute", why)
        self._reported = why


def same_sources(before: Settings, wanted: Settings) -> bool:
    """Whether two settings read the same sources, so that the history of one is valid for the other."""
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
