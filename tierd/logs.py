"""Where the log goes: standard error with the priorities of journald, or a function that shows each sentence.

Each package has one logger (``tierd.act``, ``tierd.daemon`` …). Warnings and errors are for whoever is on call
(``journalctl -p warning -u tierd``): a source is lost, the breaker is open, an undo failed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lustre.journald import JournalFormatter, to_journal
from tierd.text import printable

log = logging.getLogger("tierd")


class PlainFormatter(logging.Formatter):
    """Sentences in which job ids and names of files, which may hold anything, cannot disturb a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- of the base class
        return printable(record.message)


class TerminalFormatter(PlainFormatter):
    """Sentences, with the word ``warning`` or ``error`` before those for whoever is on call."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- of the base class
        """The word and the sentence."""
        word = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        return word + super().formatMessage(record)


def log_to_standard_error() -> None:
    """Log to standard error from now on, with priorities where journald reads it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JournalFormatter(PlainFormatter()) if to_journal() else TerminalFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class Listener(logging.Handler):
    """Hands each sentence to a function."""

    def __init__(self, listen: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(PlainFormatter())
        self._listen = listen

    def emit(self, record: logging.LogRecord) -> None:
        self._listen(self.format(record))


@contextmanager
def heard(listen: Callable[[str], None]) -> Iterator[None]:
    """Hand each sentence that tierd logs to a function, for demonstrations and simulations."""
    listener = Listener(listen)
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(listener)
