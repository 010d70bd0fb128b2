"""A service kept at work: reloaded when its settings change, and begun anew when its journal failed.

While no service can be, each cycle tries again, as somebody may have mended what is wrong. Nothing is done meanwhile,
and each new reason is said once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tierd.act.journal_form import JournalError
from tierd.config import ConfigurationError, Settings, load
from tierd.text import printable

log = logging.getLogger("tierd")


class Worker(Protocol):
    """What is kept; :class:`tierd.service.service.Service`."""

    def cycle(self) -> str:
        """One cycle, in a sentence. Raises JournalError."""

    def beat(self) -> bool:
        """A sign of life; False when it hangs."""

    def close(self) -> None:
        """End it."""


class Keeper:
    """Holds the service, and the settings in force."""

    def __init__(self, path: Path, settings: Settings, start: Callable[[Settings], Worker]) -> None:
        """Starts the first one. Raises OSError or ValueError where that cannot be: then there is nothing to keep."""
        self._path = path
        self._start = start
        self.settings = settings
        self._service: Worker | None = start(settings)
        self._told = ""

    def cycle(self) -> str:
        """One cycle; a sentence about the state."""
        if self._service is None and not self._begin():
            return f"nothing is done: {self._told}"
        assert self._service is not None
        try:
            return self._service.cycle()
        except JournalError as error:
            self._service.close()
            self._service = None
            self._tell(said(error))
            return f"nothing is done: {self._told}"

    def beat(self) -> bool:
        """A sign of life; False when a cycle hangs."""
        service = self._service
        return service is None or service.beat()

    def reload(self) -> None:
        """Take up the configuration as it is now; where that is bad, the one there was stays in force."""
        try:
            wanted = load(self._path)
        except (ConfigurationError, OSError) as error:
            log.error("configuration not reloaded, the old one stays in force: %s", error)
            return
        if wanted == self.settings:
            log.info("configuration read again: nothing has changed")
            return
        self.close()
        before, self.settings = self.settings, wanted
        try:
            self._service = self._start(wanted)
        except (OSError, ValueError) as error:
            log.error("configuration not reloaded, the old one is in force again: %s", said(error))
            self.settings = before
            self._begin()
        else:
            log.info("configuration reloaded; baselines are learnt anew")

    def close(self) -> None:
        """End the service, where there is one."""
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def _begin(self) -> bool:
        try:
            self._service = self._start(self.settings)
        except (OSError, ValueError) as error:
            self._tell(said(error))
            return False
        if self._told:
            log.info("at work again; baselines are learnt anew")
        self._told = ""
        return True

    def _tell(self, why: str) -> None:
        if why != self._told:
            log.error("%s; nothing is done, and tierctl has no answer, until that is mended; it is tried again in each "
                      "cycle", why)
        self._told = why


def said(error: Exception) -> str:
    """An error for people, with the file it is about.

    >>> said(FileNotFoundError(2, "No such file or directory", "/mnt/a")), said(ValueError("odd"))
    ('/mnt/a: No such file or directory', 'odd')
    """
    name, words = getattr(error, "filename", None), getattr(error, "strerror", None)
    return printable(f"{name}: {words}" if name and words else str(error))
