"""Priorities of journald."""

import io
import logging
import os
from pathlib import Path

import pytest

from lustre.journald import JournalFormatter, is_journal


def record(level: int, words: str) -> logging.LogRecord:
    return logging.LogRecord("tierd.act", level, "", 0, "%s", (words,), None)


@pytest.mark.parametrize(("level", "priority"), [
    (logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (logging.DEBUG, 7), (1, 7)])
def test_journald_gets_the_priority_of_each_line(level: int, priority: int) -> None:
    shown = JournalFormatter(logging.Formatter("tierd: %(message)s")).format(record(level, "NATS is\nlost"))
    assert shown == f"<{priority}>tierd: NATS is\n<{priority}>lost"


def test_each_line_of_a_traceback_has_the_priority() -> None:
    try:
        raise OSError("away")
    except OSError as error:
        failed = record(logging.ERROR, "it failed")
        failed.exc_info = (OSError, error, error.__traceback__)
    lines = JournalFormatter(logging.Formatter()).format(failed).split("\n")
    assert len(lines) > 3
    assert all(line.startswith("<3>") for line in lines)


def test_journald_is_known_by_device_and_inode(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream:
        found = os.fstat(stream.fileno())
        assert is_journal(stream, f"{found.st_dev}:{found.st_ino}")
        assert not is_journal(stream, "")
    assert not is_journal(io.StringIO(), "1:2")
