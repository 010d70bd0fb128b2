"""Where the log goes: standard error with the priorities of journald, or a function that shows each sentence.

Each package has one logger (``tierd.act``, ``tierd.daemon`` …). Warnings and errors are for whoever is on call
(``journalctl -p warning -u tierd``): a source is lost, the breaker is open, an undo failed.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from tierd.text import printable

PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (logging.DEBUG, 7))
"""Least level of each priority of syslog (``sd-daemon(3)``)."""
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


def with_priority(levelno: int, text: str) -> str:
    """The text with the prefix of a level before each line, by which journald knows its priority."""
    priority = next((number for level, number in PRIORITIES if levelno >= level), PRIORITIES[-1][1])
    return "\n".join(f"<{priority}>{line}" for line in text.split("\n"))


class JournalFormatter(PlainFormatter):
    r"""Sentences with the prefix by which journald knows the priority of each line.

    >>> record = logging.LogRecord("tierd", logging.WARNING, "", 0, "NATS is lost: %s", ("a\nb",), None)
    >>> JournalFormatter().format(record)
    '<4>NATS is lost: a\\nb'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Each line with its prefix, including those of a traceback."""
        return with_priority(record.levelno, super().format(record))


def is_journal(stream: IO[str], journal_stream: str) -> bool:
    """Whether journald reads a stream, whose device and inode systemd puts into ``JOURNAL_STREAM``."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return journal_stream == f"{found.st_dev}:{found.st_ino}"


def _to_journal() -> bool:
    return is_journal(sys.stderr, os.environ.get("JOURNAL_STREAM", ""))


def log_to_standard_error() -> None:
    """Log to standard error from now on, with priorities where journald reads it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JournalFormatter() if _to_journal() else TerminalFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def complain(sentence: object) -> None:
    """Write why the program ends to standard error, with the priority of an error where journald reads it."""
    text = str(sentence)
    sys.stderr.write(f"{with_priority(logging.ERROR, text) if _to_journal() else text}\n")


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
