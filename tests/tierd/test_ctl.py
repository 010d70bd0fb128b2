from __future__ import annotations

import json
from pathlib import Path

import pytest

from tierd.ctl import main

LAYOUTS = Path(__file__).parents[1] / "captures/2.17.57/layouts"


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


@pytest.mark.parametrize(("content", "says"), [
    (b"", "not a layout"), (b"\xd0\x0b\xd1\x0b", "not a layout"), (b"0xzz", "not a layout")])
def test_what_is_no_layout_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes,
                                    says: str) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(content)
    assert main(["layout", "--lov", str(bad)]) == 1
    complaint = capsys.readouterr().err
    assert says in complaint
    assert str(bad) in complaint


def test_a_file_elsewhere_is_not_on_lustre(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f").touch()
    assert main(["layout", str(tmp_path / "f")]) == 1
    assert capsys.readouterr().err.endswith(("not on Lustre\n", "system's default)\n"))


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", str(tmp_path / "none")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
