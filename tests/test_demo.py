"""``make demo``: what its terminal shows, and the whole of it as an administrator starts it."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import urllib.request
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from stack import demo
from tests.servers import output_until
from tierd.daemon.answers import ActAnswer, Case, ExplainAnswer

ROOT = Path(__file__).parents[1]
BEGUN_AT = 1_795_000_000.0


def case(**changes: object) -> ExplainAnswer:
    """A case with a default layout, moves and a verdict."""
    record = Case(finding=1, since=BEGUN_AT + 36, kind="noisy-neighbour", aggressor="small.1", victim="stream.2",
                  sentence="", subject="", active=False, targets=(), directories=(), usual=64e6, contended=40e6,
                  after=60e6, verdict="helped", judged_at=BEGUN_AT + 60, moves={"done": 92})
    act = ActAnswer(1, BEGUN_AT + 38, "set-default-layout", "/proj/in", 0, "done", "", None, "first 1M on flash", "")
    values = {"case": record, "evidence": {}, "ordered": False, "advice": (), "acts": (act,), "all_acts": 93,
              "bytes_moved": 77_000_000, "outcomes": {}, "messages": (), "same": ()} | changes
    return ExplainAnswer(**values)  # type: ignore[arg-type]


def shown(renderable: object, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(renderable)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 132])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    words = "QUEUED 125 files for migration, 104 MB (next: /proj/ingest/f39689.3.17, 524 kB), to first 1M on flash"
    story = demo.Story(25.0, BEGUN_AT, case())
    lines = [*shown(demo.log_line(36.0, words), width),
             *shown(demo.chart("stream, MB/s", [60.0] * 95, story.times, width), width),
             *shown(demo.summary_table(demo.summary_of(story)), width)]
    assert max(map(cell_len, lines)) <= width
    assert "104 MB" in " ".join(lines)


def test_lines_after_the_first_are_indented() -> None:
    first, second, *_ = shown(demo.log_line(7.0, "word " * 20), 50)
    assert first.startswith("   7 s  word")
    assert second.startswith("        word")


def test_the_chart_marks_what_has_happened() -> None:
    story = demo.Story(25.0, BEGUN_AT, case())
    assert story.times == (25.0, 36.0, 38.0, 60.0)
    lines = shown(demo.chart("stream, MB/s", [60.0] * 95, story.times, 80), 80)
    assert lines[0] == "stream, MB/s | neighbour 25 s | found 36 s | layout set 38 s | verdict 60 s"
    assert "80" in "\n".join(lines)
    before = "\n".join(shown(demo.chart("stream, MB/s", [60.0] * 35, demo.Story(25.0, BEGUN_AT).times, 80), 80))
    assert "neighbour" not in before


def test_the_summary_has_the_figures_of_the_verdict() -> None:
    lines = dict(demo.summary_of(demo.Story(25.0, BEGUN_AT, case())))
    assert lines["before"] == "stream.2 wrote 64.0 MB/s"
    assert lines["during"].startswith("40.0 MB/s (62%) alongside small.1; found 11 s after it started")
    assert lines["after"].startswith("60.0 MB/s (94%)")
    assert lines["changed"] == "default layout of /proj/in: first 1M on flash; 92 files moved to flash (77.0 MB)"


def test_the_picture_loads_nothing_from_the_network() -> None:
    recorder = Console(record=True, width=60, file=io.StringIO(), force_terminal=True)
    recorder.print("hello")
    text = demo.svg(recorder, "make demo")
    assert "hello" in text
    assert "@font-face" not in text
    assert set(re.findall(r"https?://[^\"' )]+", text)) == {"http://www.w3.org/2000/svg", "https://www.textualize.io"}


def test_the_picture_of_the_readme_is_there() -> None:
    assert "docs/pictures/demo.svg" in (ROOT / "README.md").read_text()
    assert "The cluster goes on until Ctrl-C" in (ROOT / "docs/pictures/demo.svg").read_text().replace("&#160;", " ")


DRAWN = re.compile("[\u2801-\u28ff]{5}")
"""Dots of a curve: characters of Braille but the empty one."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_a_terminal_of_80_columns_shows_a_curve_at_once_and_addresses_answer_until_ctrl_c(
        tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("d")  # a socket is made there, and its path must be short
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen([sys.executable, "-m", "stack.demo"], cwd=ROOT, stdout=theirs, stderr=theirs,
                               env={**os.environ, "TMPDIR": str(folder), "TERM": "xterm"}, start_new_session=True)
    os.close(theirs)
    terminal = os.fdopen(ours, encoding="utf-8", newline="")
    try:
        output = output_until(terminal, "tierd: no finding yet")
        plain = ESCAPES.sub("", output).replace(str(folder), "/tmp")
        lines = [line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n")]
        assert lines[0] == "About 90 s: at 25 s small files slow a stream; tierd finds them and acts."
        assert DRAWN.search("\n".join(lines)), "an empty grid"
        usual = [line.replace(demo.tierctl_command(), ".venv/bin/tierctl") for line in lines]
        assert [line for line in usual if cell_len(line) > 80] == []
        addresses = dict(re.findall(r"^  (\w+) +(\S.*)$", "\n".join(lines), re.MULTILINE))
        for page in ("tierd", "exporter"):
            with urllib.request.urlopen(addresses[page], timeout=20) as answer:
                assert "<html" in answer.read().decode()
        command = addresses["tierctl"].replace("/tmp", str(folder)).split()
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
        assert "mode full" in done.stdout
        process.send_signal(signal.SIGINT)
        rest = output_until(terminal, "Stopped.")
        process.wait(60)
    finally:
        process.kill()
        terminal.close()
    assert "Stopped. All files are deleted." in rest
    assert process.returncode == 0
    assert list(folder.iterdir()) == []
