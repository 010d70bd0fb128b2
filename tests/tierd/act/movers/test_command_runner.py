"""A command that tierd started does not outlive it, however it ends."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tierd.act.movers.lfs import FinishedCommand, command_runner, parent_death_prefix, works_on

LONG_SECONDS = 20
OURS = """
import sys
from tierd.act.movers.lfs import command_runner, parent_death_prefix
command_runner(60.0, before=parent_death_prefix())(("sh", "-c", "exec 3> " + sys.argv[1] + "; exec sleep 60"))
"""


@pytest.mark.skipif(not parent_death_prefix(), reason="setpriv of this machine cannot tie a command to its parent")
def test_a_command_ends_when_we_are_killed(tmp_path: Path) -> None:
    """A pipe the command holds open comes to its end when the command does."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen([sys.executable, "-c", OURS, str(pipe)], cwd=Path(__file__).parents[4]) as ours:
        reading = os.open(pipe, os.O_RDONLY)  # waits until the command has opened it
        ours.kill()
        ended, _, _ = select.select([reading], [], [], LONG_SECONDS)
        os.close(reading)
    assert ended


def test_a_command_has_the_environment_and_reports_its_errors() -> None:
    command = "sh", "-c", "echo out; echo $SLURM_JOB_ID >&2; exit 16"
    found = command_runner(10.0, {"SLURM_JOB_ID": "tierd.0"}, parent_death_prefix())(command)
    assert found == FinishedCommand(16, "tierd.0\n")


def test_a_command_that_hangs_is_killed() -> None:
    assert command_runner(0.05)(("sh", "-c", "exec cat /dev/zero > /dev/null")).code == -9


def test_without_setpriv_nothing_is_tied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert parent_death_prefix() == ()
    old = tmp_path / "setpriv"
    old.write_text("#!/bin/sh\necho \"setpriv: unrecognized option '--pdeathsig'\" >&2\nexit 1\n")
    old.chmod(0o755)
    assert parent_death_prefix() == ()


def test_a_process_that_moves_a_file_is_found_by_its_fid(tmp_path: Path) -> None:
    for number, words in enumerate((b"lfs\0migrate\0/mnt/.lustre/fid/[0x1:0x2:0x0]\0", b"tail\0[0x1:0x3:0x0]\0", b"")):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}/cmdline").write_bytes(words)
    assert works_on(["[0x1:0x9:0x0]", "[0x1:0x2:0x0]"], tmp_path)
    assert not works_on(["[0x1:0x3:0x0]"], tmp_path)
    assert not works_on([], tmp_path)
