"""What the one on call sees: which sentences are warnings."""

import logging
import os
from pathlib import Path

import pytest

from tests.tierd.simulated import Faulty, world
from tierd.__main__ import main
from tierd.act.journal.reader import JournalReader
from tierd.acts import Outcome
from tierd.clock import SystemClock
from tierd.daemon.log import FindingLog
from tierd.logs import PlainFormatter, TerminalFormatter, heard


def record(level: int, words: str) -> logging.LogRecord:
    return logging.LogRecord("tierd.act", level, "", 0, "%s", (words,), None)


def test_a_terminal_shows_the_word_and_no_control_characters() -> None:
    assert PlainFormatter().format(record(logging.ERROR, "a job \x1b[2J\nof uid 7")) == "a job \\x1b[2J\\nof uid 7"
    shown = [TerminalFormatter().format(record(level, "x")) for level in (logging.INFO, logging.WARNING, logging.ERROR)]
    assert shown == ["x", "warning: x", "error: x"]


def test_what_prevents_a_start_is_an_error_for_journald(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tierd.toml").write_text("[act]\nmode = 1\nmod = 2\n")
    with (tmp_path / "log").open("w+") as stream:
        found = os.fstat(stream.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        monkeypatch.setattr("sys.stderr", stream)
        assert main(["--config", str(tmp_path / "tierd.toml")]) == 1
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) > 1
    assert all(line.startswith("<3>") for line in lines)


def test_a_listener_hears_until_it_leaves() -> None:
    heard_words: list[str] = []
    with heard(heard_words.append):
        logging.getLogger("tierd.sense").info("one %d", 1)
    logging.getLogger("tierd.sense").warning("two")
    assert heard_words == ["one 1"]


def test_a_lost_source_is_a_warning_and_a_finding_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tierd")
    at = world(tmp_path, hook=lambda near, _: Faulty(near))
    at.run(until=100)
    assert isinstance(at.source, Faulty)
    at.source.fault = OSError("the exporter is down")
    at.run(until=110)
    levels = {words: each.levelno for each in caplog.records for words in [each.getMessage()]}
    assert {level for words, level in levels.items() if words.startswith(("FOUND", "SET", "MOVED", "QUEUED"))} == {
        logging.INFO}
    assert [level for words, level in levels.items() if "the exporter is down" in words] == [logging.WARNING]
    at.source.fault = None
    at.run(until=120)
    assert [each.levelno for each in caplog.records if "recovered" in each.getMessage()] == [logging.INFO]


@pytest.mark.parametrize(("outcome", "level"), [
    (Outcome.UNDONE, logging.INFO), (Outcome.FAILED, logging.WARNING), (Outcome.REFUSED, logging.WARNING)])
def test_an_undo_that_did_nothing_is_a_warning(outcome: Outcome, level: int, tmp_path: Path,
                                               caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tierd")
    at = world(tmp_path)
    at.run_until_said("SET default layout", before=150)
    (entry,) = at.journal.entries()
    finding_log = FindingLog(at.journal, SystemClock())
    finding_log.undone(1, entry, outcome, "it was changed meanwhile")
    (logged,) = [each for each in caplog.records if "it was changed meanwhile" in each.getMessage()]
    assert logged.levelno == level
    stored = JournalReader(tmp_path / "journal.sqlite").messages(1)
    assert "it was changed meanwhile" in stored[-1].sentence
