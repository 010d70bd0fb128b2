"""What tierctl shows of a daemon over the simulated cluster: what an administrator types, and reads; its options."""

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site
from tierd.cli import MODULES, client, completion
from tierd.cli.tierctl import main, parser
from tierd.cli.top_tables import Now


def test_a_finding_is_explained_from_its_numbers_to_the_verdict(site: Site) -> None:
    site.run(until=35)
    assert site.shown("findings").startswith("F1  noisy-neighbour: ior_stream.1002 streams at")
    status = site.shown("status")
    assert re.search(r"lustre-OST0002  \|[#=+.-]{15,20} *\|  .* # ior_stream.1002 \d+%, = mdt_small.1001 \d+%", status)
    assert "case F1: mdt_small.1001 against ior_stream.1002 in /proj/ingest, found" in status
    history = site.shown("history")
    assert re.search(" 1  20.* done     set-default-layout  /proj/ingest  first 1M on flash", history)
    early = site.shown("explain", "F1")
    assert "; active." in early
    assert "  judging: the throughput of the victim is measured.\n" in early
    site.run(until=130)
    reported = site.shown("explain", "1")  # by the act
    assert reported.startswith("F1, noisy-neighbour, found 20")
    for part in ("slowdown: 1.", "Directories of the aggressor, from the changelogs: /proj/ingest.",
                 "SET default layout of /proj/ingest", "Acts: 1 set-default-layout done; 0 B moved.",
                 "whole file on hdd (1 stripe) -> first 1M on flash (1 stripe), rest on hdd (1 stripe)",
                 "  closed: helped; kept; "):
        assert part in reported
    timeline = reported.partition("Timeline, ")[2].partition("\n\n")[0].splitlines()[1:]
    events = [line[2:10] for line in timeline if re.match(r"  \d\d:\d\d:\d\d ", line)]
    assert events == sorted(events)
    order = [next(number for number, line in enumerate(timeline) if part in line)
             for part in ("FOUND", "SET default layout", "KEPT: it helped")]
    assert order == sorted(order)
    assert re.search(r"  \+\d+ s  ", timeline[-1])
    assert ": helped; kept" in site.shown("status")


def test_the_account_of_a_job_stands_beside_it(site: Site) -> None:
    site.accounts = {1001: "anna"}
    site.run(until=35)
    until = monotonic() + 20
    while "anna" not in (status := site.shown("status")):  # the lookup runs in a thread
        assert monotonic() < until
    assert "\nusers: mdt_small.1001 is anna (1001)\n" in status
    roles = "users: aggressor anna (1001), victim 1002\n"
    assert roles in site.shown("findings")
    assert roles in site.shown("explain", "F1")
    assert re.search(r"mdt_small\.1001 +anna \(1001\) ", site.shown("top", "--once"))
    assert "user anna (1001)" in site.fetched("/")[1]
    now = site.cluster.epoch
    reported = site.ask("report", since=now - 200, until=now)
    assert reported["users"] == {"mdt_small.1001": "anna (1001)", "ior_stream.1002": "1002"}


def test_without_a_past_device_time_predicts_what_the_act_brings(site: Site) -> None:
    cluster = FluidCluster(recorded_test_bed(), (STREAM, replace(NOISE, start_seconds=0.0)))
    cluster.advance(60)
    site.begin_again(cluster)
    site.run_until_said("KEPT: it helped", before=240)
    reported = site.shown("explain", "F1")
    found = re.search(r"device time predicted ([\d.]+) MB/s \(([\d.]+) MB/s to ([\d.]+) MB/s\) without", reported)
    assert found, reported
    after = re.search(r", ([\d.]+) MB/s after", reported)
    assert after
    predicted, low, high = map(float, found.groups())
    assert low < predicted < high
    assert low <= float(after[1]) <= high


@pytest.mark.parametrize(("name", "error"), [
    ("F99", "the journal has no finding F99"), ("7", "the journal has no act 7"),
    ("x", "neither a finding (F3), nor an order (D3, O3), nor an act"),
    ("F" + "9" * 30, "neither a finding"), ("", "neither")])
def test_unknown_names_are_refused(site: Site, name: str, error: str) -> None:
    assert error in site.failed("explain", name)


def test_a_plan_is_shown_and_nothing_is_done(site: Site) -> None:
    assert "no findings that tierd acts on" in site.shown("plan")
    site.shown("drain", "looking first")
    site.run(until=55)
    plan = site.shown("plan")
    assert plan.startswith("DRAINING: looking first; the queue is empty (tierctl resume ends the drain); mode full\n")
    assert "  lfs setstripe -E 1M -c 1 -p flash -E -1 " in plan
    assert " -p hdd /proj/ingest\n" in plan
    assert site.shown("history") == "no acts yet\n"
    site.filesystem.set_xattr("/proj", "user.tierd", b"off")
    site.run(until=90)
    assert "not done: /proj/ingest: user.tierd is off at /proj" in site.shown("plan")


@pytest.mark.parametrize(("changed", "why", "remedy"), [
    ({"benefit": {"min_gain": 0.9}}, r"ior_stream\.1002: the expected gain of [\d.]+ MB/s is less than 90",
     "lower benefit.min_gain"),
    ({"act": {"mode": "observe"}}, "mode observe: findings are reported, and nothing is planned", ""),
    ({"act": {"on": ("outgrown-component",)}}, r"findings of kind noisy-neighbour are reported only \(act\.on\)", "")],
    ids=["gain", "mode", "kinds"])
def test_status_explain_and_page_say_why_nothing_is_done(
        site: Site, changed: dict[str, Any], why: str, remedy: str) -> None:
    """It stood in the log alone."""
    site.restart(**changed)
    site.run(until=55)
    status, page = site.shown("status"), site.fetched("/")[1]
    for text in (status, site.shown("explain", "F1"), page):
        assert re.search(why, text)
    assert f"to change that: {remedy}" in status
    assert f"To change that: {remedy}" in page


def test_the_live_view_shows_who_slows_whom(site: Site) -> None:
    assert "no findings" in site.shown("top", "--once")
    site.run(until=35)
    reported = site.shown("top")
    assert "F1 noisy-neighbour: ior_stream.1002" in reported
    assert re.search(r"lustre-OST0002 .* 1\.\d\d x", reported)
    assert re.search(r"mdt_small\.1001 .* noise *\n", reported)
    assert re.search(r"ior_stream\.1002 .* slowed *\n", reported)
    answer = json.loads(site.shown("top", "--json"))
    assert {row["role"] for row in answer["jobs"]} == {"noise", "slowed"}
    Now(1).shown(answer | {"paused": "[bold]x\x1b[2J", "faults": {"a": "[/]"}})  # no markup, no escapes


def test_before_the_first_look_the_answer_has_the_same_keys(site: Site) -> None:
    assert "no advice yet" in site.shown("advise")
    before = site.ask("top")
    site.run(until=15)
    assert before.keys() == site.ask("top").keys()


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    operations = (Path(__file__).parents[3] / "docs/operations.md").read_text(encoding="utf-8")
    commands = next(action for action in parser()._actions if action.dest == "command").choices
    assert commands is not None
    for name in commands:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert len(capsys.readouterr().out.splitlines()) > 5
        assert f"tierctl {name}" in operations, name


ROOT = Path(__file__).parents[3]


def test_options_of_the_daemon_stand_before_or_after_the_command(
        site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    after = site.shown("status")
    assert main(["--socket", site.socket, "status"]) == 0
    assert capsys.readouterr().out == after
    assert main(["--json", "--socket", site.socket, "status"]) == 0
    assert capsys.readouterr().out.startswith("{")


@pytest.mark.usefixtures("berlin")
def test_times_are_local_and_utc_on_request(site: Site) -> None:
    site.run(until=20)
    local, utc = (re.search(r"last reading [\d-]+ (\d\d):\S+ (\w+)", site.shown("status", *more))
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
def test_wrong_values_are_refused_before_any_request(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error: argument" in capsys.readouterr().err


def ids(text: str) -> list[str]:
    return re.findall(r"^ *(\d+)  ", text, re.MULTILINE)


def test_history_selects_by_path_job_and_time(site: Site) -> None:
    assert site.shown("history", "--outcome", "failed") == "no acts yet\n"
    site.run(until=60)
    (every,) = ids(site.shown("history"))
    for chosen in (["--path", "/proj"], ["--path", "/proj/ingest/"], ["--job", "ior_stream.1002"],
                   ["--job", "mdt_small.1001"], ["--act", "set-default-layout"],
                   ["--path", f"{site.settings.filesystem.mount}/proj"], ["--since", "1970-01-02"]):
        assert ids(site.shown("history", *chosen)) == [every], chosen
    for other in (["--path", "/pro"], ["--path", "/proj/ingest/x"], ["--since", "2099-01-01"],
                  ["--outcome", "failed"], ["--act", "migrate"],
                  ["--outcome", "failed", "--long"]):
        assert "no matching acts; all outcomes: 1 done" in site.shown("history", *other)
    assert site.failed("history", "--case", "D1") == "the journal has no order D1, but finding F1\n"
    assert "no finding with a job 'nobody'" in site.failed("history", "--job", "nobody")


def test_findings_about_one_job(site: Site) -> None:
    assert site.shown("findings", "--job", "ior_stream.1002").startswith("no findings yet")
    site.run_until_said("FOUND", before=60)
    for job in ("ior_stream.1002", "mdt_small.1001"):
        assert site.shown("findings", "--job", job).startswith("F1  noisy-neighbour: ior_stream.1002")
    count = len(site.ask("findings")["findings"])
    assert site.shown("findings", "--job", "4711") == (
        f"no finding is about 4711 now, {count} finding{'s'[:count - 1]} about others; earlier ones: tierctl report\n")


def test_a_pause_for_a_time_ends_by_itself_even_after_a_restart(site: Site) -> None:
    site.run(until=10)
    paused = site.shown("pause", "--for", "30s", "disks")
    assert re.match(r"paused: disks, until 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC\n", paused)
    site.run(until=20)
    site.restart()
    assert site.shown("status").startswith("PAUSED: disks, until 20")
    site.run(until=45)
    assert site.shown("status").startswith("running")
    assert "until" not in site.shown("pause", "longer")
    site.run(until=200)
    assert site.shown("status").startswith("PAUSED: longer (")


def test_a_pause_for_a_time_does_not_close_the_circuit_breaker(site: Site) -> None:
    site.run(until=10)
    site.service.gate.operating_state.trip("too many failures")
    assert site.shown("pause", "--for", "30s", "disks").startswith("paused: too many failures; disks, until 20")
    site.run(until=45)
    assert site.shown("status").startswith("PAUSED: too many failures (tierctl resume")
    site.restart()
    assert site.shown("status").startswith("PAUSED: too many failures (tierctl resume")
    site.shown("resume")
    assert site.shown("status").startswith("running")


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


def test_colours_change_no_text(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.run_until_said("SET default layout", before=60)
    for command in (["status"], ["findings"], ["history"], ["explain", "F1"]):
        plain = site.shown(*command)
        monkeypatch.setenv("FORCE_COLOR", "1")
        coloured = site.shown(*command)
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


LAYOUTS = Path(__file__).parents[2] / "captures/2.17.57/layouts"


def test_a_hex_dump_of_getfattr_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "--lov", str(LAYOUTS / "pfl2.lustre.lov.hex")]) == 0
    assert capsys.readouterr().out == (
        "first 1M on flash (1 stripe), rest on hdd (4 stripes of 4M)\n"
        "lfs setstripe -E 1M -c 1 -S 1M -p flash -E -1 -c 4 -S 4M -p hdd\n")


def test_raw_bytes_do_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (LAYOUTS / "pfl2.lustre.lov.hex").read_text().split("=0x")[1].strip()
    raw = tmp_path / "lov"
    raw.write_bytes(bytes.fromhex(text))
    assert main(["layout", "--lov", str(raw)]) == 0
    assert capsys.readouterr().out.startswith("first 1M on flash (1 stripe), rest on hdd (4 stripes of 4M)\n")


def test_json_stands_before_or_after_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    (every,) = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    wants = {"explain": ["F1"], "apply": ["F1"], "decline": ["F1"], "undo": ["1"], "promote": ["/a"], "demote": ["/a"],
             "simulate": ["demo"], "layout": ["/a"]}
    for name in sorted({*every.choices} - {"completion"}):
        assert parser().parse_args(["--json", name, *wants.get(name, [])]).json, name
        assert parser().parse_args([name, *wants.get(name, []), "--json"]).json, name
        assert not parser().parse_args([name, *wants.get(name, [])]).json, name
    assert main(["--json", "layout", "--lov", str(LAYOUTS / "pfl2.lustre.lov.hex")]) == 0
    assert [c["pool"] for c in json.loads(capsys.readouterr().out)["components"]] == ["flash", "hdd"]


@pytest.mark.parametrize(("content", "sentence"), [
    (b"", "not a layout"), (b"\xd0\x0b\xd1\x0b", "not a layout"), (b"0xzz", "not a layout")])
def test_an_invalid_layout_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes,
                                    sentence: str) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(content)
    assert main(["layout", "--lov", str(bad)]) == 1
    complaint = capsys.readouterr().err
    assert sentence in complaint
    assert str(bad) in complaint


@pytest.mark.parametrize(("name", "words"), [
    ("f", ("not on Lustre\n", "file system)\n")), ("none", ("No such file or directory\n",))])
def test_a_file_on_another_file_system_and_a_missing_file_are_reported(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, words: tuple[str, ...]) -> None:
    (tmp_path / "f").touch()
    assert main(["layout", str(tmp_path / name)]) == 1
    assert capsys.readouterr().err.endswith(words)


def added(command: str) -> set[str]:
    """Commands of the parser that is made for one."""
    (found,) = [action for action in parser(command)._actions if isinstance(action, argparse._SubParsersAction)]
    return set(found.choices)


def test_each_module_adds_the_commands_it_is_listed_with() -> None:
    assert added("") == {name for names in MODULES.values() for name in names}
    for names in MODULES.values():
        for name in names:
            assert added(name) == set(names)


def test_requests_load_the_daemon_little(reading: Site) -> None:
    """Importing all of it took 4 to 20 s of processor time on a loaded node, for each ``tierctl status``."""
    commands = [["status"], ["findings"], ["explain", "F1"], ["advise"], ["history"], ["plan"], ["movers"], ["readers"],
                ["pause"], ["resume"], ["submit", "/a"], ["bill", "--line", "--job", "7"]]
    heavy = {"simulator", "tierd.config", "tierd.simulation", "tierd.act", "tierd.model", "sqlite3", "pydantic",
             "prometheus_client", "rich", "jinja2", "nats", "numpy", "ssl", "html",
             "email", "logging", "asyncio", "shutil"}
    script = f"""import sys
before = set(sys.modules)
from tierd.cli.tierctl import main
for command in {commands!r}:
    assert main([*command, "--socket", {reading.socket!r}]) == 0, command
    assert not {heavy!r} & (set(sys.modules) - before), command"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# ``tierctl layout --lov`` on whatever bytes were saved to a file: an answer or a reason, and nothing that disturbs

RAW = [bytes.fromhex(found[1]) for path in sorted(LAYOUTS.glob("*.hex"))
       if (found := re.search(r"0x([0-9a-f]+)", path.read_text()))]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A recorded layout with a few bytes changed, perhaps cut short; raw, or as getfattr prints it."""
    data = bytearray(draw(st.sampled_from(RAW)))
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    whole = bytes(data[: draw(st.none() | st.integers(0, len(data)))])
    form = draw(st.sampled_from((b"%s", b"0x%s\n", b"# file: x\nlustre.lov=0x%s\n", None)))
    return whole if form is None else form % whole.hex().encode()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lov") / "file"


@given(data=mutated() | st.binary(max_size=300), form=st.sampled_from(([], ["--json"])))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_an_answer_or_a_reason(place: Path, data: bytes, form: list[str]) -> None:
    place.write_bytes(data)
    answer, words = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(answer), contextlib.redirect_stderr(words):
        code = main(["layout", "--lov", str(place), *form])
    assert code == (0 if answer.getvalue().strip() else 1)
    assert bool(words.getvalue()) == bool(code)
    assert (answer.getvalue() + words.getvalue()).replace("\n", "").isprintable()


def test_escape_sequences_do_not_clear_the_screen(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = next(raw for raw in RAW if raw[:4] == bytes.fromhex("d00bd70b"))
    place.write_bytes(foreign[:-4] + b"\x1b[2J")
    assert main(["layout", "--lov", str(place)]) == 0
    assert "\\x1b[2J" in capsys.readouterr().out


CTL = [sys.executable, "-m", "tierd.cli.tierctl"]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Children inherit that SIGINT is ignored, as it is where a shell runs the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


MAY_GO_ON = "interrupted; tierd may still carry out {}: see tierctl status and tierctl history\n"


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("command", "sentence"), [
    (["status"], "interrupted\n"), (["top"], "interrupted\n"), (["promote", "/a"], MAY_GO_ON.format("promote")),
    (["undo", "F3"], MAY_GO_ON.format("undo")), (["submit", "/a"], "interrupted; accepted before: 0 of 1\n"),
], ids=lambda part: part[0] if isinstance(part, list) else "")
def test_ctrl_c_is_not_an_error(tmp_path: Path, command: list[str], sentence: str) -> None:
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(tmp_path / "s"))
        daemon.listen()
        process = subprocess.Popen([*CTL, *command, "--socket", str(tmp_path / "s")], stderr=subprocess.PIPE)
        connection, _ = daemon.accept()  # it waits for an answer now
        with connection:
            connection.recv(1)
            process.send_signal(signal.SIGINT)
            _, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint.decode()) == (130, sentence)


def test_a_terminal_that_cannot_go_back_is_shown_it_once(site: Site) -> None:
    supervisor, terminal = os.openpty()
    with open(supervisor, "rb", buffering=0) as shown:
        with open(terminal, "wb", buffering=0) as out:
            done = subprocess.run([*CTL, "top", "--socket", site.socket], stdout=out, check=False, timeout=60,
                                  env={**os.environ, "TERM": "dumb"})
        assert done.returncode == 0
        assert shown.read(4096).startswith(b"tierd running; mode full\r\n")
