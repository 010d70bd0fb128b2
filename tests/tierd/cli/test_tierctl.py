import argparse
import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tierd.site import Site
from tierd.cli import MODULES
from tierd.cli.tierctl import main, parser

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
    assert main(["layout", "--yaml", "--lov", str(raw)]) == 0
    assert capsys.readouterr().out == (LAYOUTS / "pfl2.getstripe-y.yaml").read_text()


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


@given(data=mutated() | st.binary(max_size=300), form=st.sampled_from(([], ["--json"], ["--yaml"])))
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
    assert main(["layout", "--lov", str(place), "--yaml"]) == 1
    assert "--json" in capsys.readouterr().err


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
