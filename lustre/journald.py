"""Standard error with the priorities of journald: ``journalctl -p warning -u UNIT`` is for whoever is on call."""

from __future__ import annotations

import logging
import os
import sys
from typing import IO

PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (logging.DEBUG, 7))
"""Least level of each priority of syslog (``sd-daemon(3)``)."""


def with_priority(levelno: int, text: str) -> str:
    """The text with the prefix of a level before each line, by which journald knows its priority."""
    priority = next((number for level, number in PRIORITIES if levelno >= level), PRIORITIES[-1][1])
    return "\n".join(f"<{priority}>{line}" for line in text.split("\n"))


class JournalFormatter(logging.Formatter):
    r"""The text of another formatter with the prefix before each line, including those of a traceback.

    >>> record = logging.LogRecord("tierd", logging.WARNING, "", 0, "NATS is lost: %s", ("a\nb",), None)
    >>> JournalFormatter(logging.Formatter()).format(record)
    '<4>NATS is lost: a\n<4>b'
    """

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        return with_priority(record.levelno, self._inner.format(record))


def is_journal(stream: IO[str], journal_stream: str) -> bool:
    """Whether journald reads a stream, whose device and inode systemd puts into ``JOURNAL_STREAM``."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return journal_stream == f"{found.st_dev}:{found.st_ino}"


def to_journal() -> bool:
    """Whether journald reads standard error."""
    return is_journal(sys.stderr, os.environ.get("JOURNAL_STREAM", ""))


def complain(sentence: object) -> None:
    """Write why the program ends to standard error, with the priority of an error where journald reads it."""
    text = str(sentence)
    sys.stderr.write(f"{with_priority(logging.ERROR, text) if to_journal() else text}\n")
