"""Options of all commands, times and colours; and what history, pause and completion add to them."""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
from datetime import UTC
from pathlib import Path

import pytest

from tests.tierd.site import Site, failed, shown
from tierd.cli import client, completion
from tierd.cli.tierctl import main, parser
from tierd.daemon.client import ask

ROOT = Path(__file__).parents[3]


def test_options_of_the_daemon_stand_before_or_after_the_command(
        site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    after = shown(capsys, "status", site=site)
    assert main(["--socket", site.socket, "status"]) == 0
    assert capsys.readouterr().out == after
    assert main(["--json", "--socket", site.socket, "status"]) == 0
    assert capsys.readouterr().out.startswith("{")


@pytest.mark.usefixtures("berlin")
def test_times_are_local_and_utc_on_request(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.run(until=20)
    local, utc = (re.search(r"last reading [\d-]+ (\d\d):\S+ (\w+)", shown(capsys, "status", *more, site=site))
                  for more in ([], ["--utc"]))
    assert local is not None
    assert utc is not None
    assert (local[2], utc[2]) == ("CET", "UTC") or (local[2], utc[2]) == ("CEST", "UTC")
    assert (int(local[1]) - int(utc[1])) % 24 in {1, 2}


@pytest.mark.usefixtures("berlin")
def test_times_of_options_are_local_and_utc_on_request() -> None:
    assert client.moment("2026-11-18T12:00", 0.0) == client.moment("2026-11-18T11:00", 0.0, UTC)
    assert client.moment("2026-11-18T11:00Z", 0.0) == client.moment("2026-11-18T11:00", 0.0, UTC)


@pytest.mark.parametrize("arguments", [
    ["history", "--since", "yesterday"], ["history", "--since", "1x"], ["history", "--last", "0"],
    ["pause", "--for", "2"], ["pause", "--for", "0h"], ["pause", "--for", "-1h"],
    ["completion", "csh"], ["history", "--outcome", "nonsense"],
    ["report", "--since", "yesterday"], ["report", "--until", "yesterday"], ["whatif", "--until", "yesterday"],
    *([command, option, when] for command, option in (
        ("history", "--since"), ("report", "--since"), ("bill", "--since"), ("top", "--replay"))
      for when in ("0001-01-01", "9999-12-31T23:59", "9999999999w", f"{'9' * 400}w")),
])
@pytest.mark.usefixtures("berlin")
def test_wrong_values_are_refused_before_any_request(
        arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error: argument" in capsys.readouterr().err


def ids(text: str) -> list[str]:
    return re.findall(r"^ *(\d+)  ", text, re.MULTILINE)


def test_history_selects_by_path_job_and_time(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "history", "--outcome", "failed", site=site) == "no acts yet\n"
    site.run(until=60)
    (every,) = ids(shown(capsys, "history", site=site))
    for chosen in (["--path", "/proj"], ["--path", "/proj/ingest/"], ["--job", "ior_stream.1002"],
                   ["--job", "mdt_small.1001"], ["--act", "set-default-layout"],
                   ["--path", f"{site.settings.filesystem.mount}/proj"], ["--since", "1970-01-02"]):
        assert ids(shown(capsys, "history", *chosen, site=site)) == [every], chosen
    for other in (["--path", "/pro"], ["--path", "/proj/ingest/x"], ["--since", "2099-01-01"],
                  ["--outcome", "failed"], ["--act", "migrate"],
                  ["--outcome", "failed", "--long"]):
        assert "no matching acts; all outcomes: 1 done" in shown(capsys, "history", *other, site=site)
    assert failed(capsys, "history", "--case", "D1", site=site) == "the journal has no order D1, but finding F1\n"
    assert "no finding with a job 'nobody'" in failed(capsys, "history", "--job", "nobody", site=site)


def test_findings_about_one_job(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "findings", "--job", "ior_stream.1002", site=site).startswith("no findings yet")
    site.run_until_said("FOUND", before=60)
    for job in ("ior_stream.1002", "mdt_small.1001"):
        assert shown(capsys, "findings", "--job", job, site=site).startswith("F1  noisy-neighbour: ior_stream.1002")
    others = len(ask(site.socket, {"request": "findings"})["findings"])
    assert shown(capsys, "findings", "--job", "4711", site=site) == (
        f"no finding about 4711 now, of {others} finding{'s' if others > 1 else ''}; earlier ones: tierctl report\n")


def test_a_pause_for_a_time_ends_by_itself_even_after_a_restart(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.run(until=10)
    paused = shown(capsys, "pause", "--for", "30s", "disks", site=site)
    assert re.match(r"paused: disks, until 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC\n", paused)
    site.run(until=20)
    site.restart()
    assert shown(capsys, "status", site=site).startswith("PAUSED: disks, until 20")
    site.run(until=45)
    assert shown(capsys, "status", site=site).startswith("running")
    assert "until" not in shown(capsys, "pause", "longer", site=site)
    site.run(until=200)
    assert shown(capsys, "status", site=site).startswith("PAUSED: longer (")


def test_a_pause_for_a_time_does_not_close_the_circuit_breaker(
        site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.run(until=10)
    site.service.gate.operating_state.trip("too many failures")
    assert shown(capsys, "pause", "--for", "30s", "disks", site=site).startswith(
        "paused: too many failures; disks, until 20")
    site.run(until=45)
    assert shown(capsys, "status", site=site).startswith("PAUSED: too many failures (tierctl resume")
    site.restart()
    assert shown(capsys, "status", site=site).startswith("PAUSED: too many failures (tierctl resume")
    shown(capsys, "resume", site=site)
    assert shown(capsys, "status", site=site).startswith("running")


def test_colours_are_for_terminals_without_no_color() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert client.colours(Terminal(), {})
    assert not client.colours(Terminal(), {"NO_COLOR": "1"})
    assert not client.colours(Terminal(), {"TERM": "dumb"})
    assert not client.colours(io.StringIO(), {})
    assert client.colours(io.StringIO(), {"FORCE_COLOR": "1"})
    assert not client.colours(io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"})


def test_colours_change_no_text(
        site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    site.run_until_said("SET default layout", before=60)
    for command in (["status"], ["findings"], ["history"], ["explain", "F1"]):
        plain = shown(capsys, *command, site=site)
        monkeypatch.setenv("FORCE_COLOR", "1")
        coloured = shown(capsys, *command, site=site)
        monkeypatch.delenv("FORCE_COLOR")
        assert "\x1b[" in coloured
        assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


COMMANDS = [name for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
            for name in action.choices]


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_completions_have_every_command_and_are_accepted_by_the_shell(
        shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in printed] == []
    if found := shutil.which(shell):
        script = tmp_path / "completions"
        script.write_text(printed)
        assert subprocess.run([found, "-n", str(script)], check=False).returncode == 0


def test_manual_pages_are_those_of_the_parsers(tmp_path: Path) -> None:
    for package in ("lustre-tierd", "lustre-exporter"):
        subprocess.run([sys.executable, "scripts/cli_files.py", package, str(tmp_path)], check=True, cwd=ROOT)
    pages = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("usr/share/man/*/*"))
    assert pages == ["usr/share/man/man1/tierctl.1", "usr/share/man/man8/lustre-exporter.8",
                     "usr/share/man/man8/tierd.8"]
    text = (tmp_path / pages[0]).read_text().replace("\\-", "-")
    assert [name for name in COMMANDS if f"tierctl {name}" not in text] == ["simulate", "evaluate"], "not in a package"
    assert "--outcome" in text
    assert ".SH EXAMPLES" in text
    if shutil.which("groff"):
        for page in pages:
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", str(tmp_path / page)], capture_output=True,
                                  text=True, check=True)
            assert done.stderr == ""


@pytest.mark.parametrize("command", [["status"], ["top"], ["submit", "/a"], ["report"], ["drain", "--wait"], ["plan"]],
                         ids=" ".join)
@pytest.mark.parametrize("name", ["a\x1b[2J\udcff", "file/x"])
def test_why_a_socket_is_not_reached_is_one_readable_line(
        command: list[str], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main([*command, "--socket", str(tmp_path / name)]) in {1, 75}
    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable()
    assert "Errno" not in line


def test_a_name_of_a_file_among_the_arguments_does_no_harm(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["promote", "/proj/a", "/proj/\x1b[2J\udcff"])
    assert all(line.isprintable() for line in capsys.readouterr().err.splitlines())
