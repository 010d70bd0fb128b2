from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tierd.site import Site
from tierd.acts import Outcome
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


def test_json_has_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "--json", "--lov", str(LAYOUTS / "pfl2.lustre.lov.hex")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [c["pool"] for c in printed["components"]] == ["flash", "hdd"]


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


def test_a_file_elsewhere_is_not_on_lustre(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f").touch()
    assert main(["layout", str(tmp_path / "f")]) == 1
    assert capsys.readouterr().err.endswith(("not on Lustre\n", "file system)\n"))


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", str(tmp_path / "none")]) == 1
    assert "No such file or directory" in capsys.readouterr().err


def added(command: str) -> set[str]:
    """Commands of the parser that is made for one."""
    (found,) = [action for action in parser(command)._actions if isinstance(action, argparse._SubParsersAction)]
    return set(found.choices)


def test_each_module_adds_the_commands_it_is_listed_with() -> None:
    assert added("") == {name for names in MODULES.values() for name in names}
    for names in MODULES.values():
        for name in names:
            assert added(name) == set(names)


@pytest.mark.parametrize("command", [
    ["status"], ["findings"], ["explain", "F1"], ["advise"], ["history"], ["plan"], ["movers"], ["readers"], ["pause"],
    ["resume"], ["submit", "/a"]], ids=" ".join)
def test_asking_the_daemon_loads_little(command: list[str], reading: Site) -> None:
    """Importing all of it took 4 to 20 s of processor time on a loaded node, for each ``tierctl status``."""
    heavy = {"simulator", "tierd.config", "tierd.simulation", "tierd.act", "tierd.model", "sqlite3", "pydantic",
             "prometheus_client", "rich", "jinja2", "nats", "numpy", "ssl", "html",
             "email", "logging", "asyncio", "shutil"}
    script = f"""import sys
before = set(sys.modules)
from tierd.cli.tierctl import main
code = main([*{command!r}, "--socket", {reading.socket!r}])
sys.stderr.write(" ".join({heavy!r} & (set(sys.modules) - before)))
sys.exit(code)"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("form", [[], ["--json"], ["--long"]])
def test_an_unknown_outcome_is_an_error_of_the_command_line(
        form: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    socket = str(tmp_path / "nobody-listens.sock")
    with pytest.raises(SystemExit) as ended:
        main(["history", "--outcome", "nonsense", *form, "--socket", socket])
    refusal = capsys.readouterr().err
    assert ended.value.code == 2
    assert "argument --outcome: invalid choice: 'nonsense'" in refusal
    assert [outcome for outcome in Outcome if outcome not in refusal.partition("invalid choice")[2]] == []
    assert socket not in refusal


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_is_accepted(outcome: Outcome) -> None:
    assert parser("history").parse_args(["history", "--outcome", outcome]).outcome == outcome
