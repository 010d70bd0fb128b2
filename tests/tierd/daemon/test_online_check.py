"""``tierd --check-config --online``."""

import errno
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lustre.errors import of_errno
from tests.tierd.later import raising
from tests.tierd.sense.loopback_server import answers, liar
from tierd.__main__ import main
from tierd.config.contradictions import Contradiction
from tierd.config.load import parse
from tierd.daemon.online_check import Node, online_contradictions, this_node

POOLS: Mapping[str, Sequence[str]] = {"flash": ("lustre-OST0000",), "hdd": ("lustre-OST0001",), "spare": ()}
MOUNTED: Any = SimpleNamespace(fsname="lustre", pools=lambda: POOLS, xattr=lambda *_: b"")
SOUND = Node(lambda: MOUNTED, lambda: ("MDT0000",), lambda path: True,
             lambda url, access, kinds: b"", lambda name: "/bin/lfs", lambda name: None)
failing = raising(OSError("not mounted"))


def found(text: str, node: Node = SOUND) -> list[Contradiction]:
    return list(online_contradictions(parse(text.encode(), "t.toml"), tomllib.loads(text), node))


def test_a_configuration_that_fits_the_file_system_is_accepted() -> None:
    assert found('[sense]\nmdts = ["MDT0000"]\nexporters = ["http://a:1/metrics"]') == []


FLASH_IS_NVME = '[small_files_to_flash]\nflash_pool = "nvme"\n'


@pytest.mark.parametrize(("text", "node", "location", "sentence", "fatal"), [
    (FLASH_IS_NVME, SOUND, ("small_files_to_flash", "flash_pool"),
     "lustre has no pool 'nvme'; its pools: flash, hdd, spare", True),
    (FLASH_IS_NVME + '[act]\non = ["noisy-neighbour", "data-on-mdt"]', SOUND, ("small_files_to_flash", "flash_pool"),
     "lustre has no pool 'nvme'; its pools: flash, hdd, spare", False),
    (FLASH_IS_NVME + '[[scopes]]\npath = "/a"\n[[scopes]]\npath = "/b"', SOUND, ("small_files_to_flash", "flash_pool"),
     "lustre has no pool 'nvme'; its pools: flash, hdd, spare", True),
    ('[[scopes]]\npath = "/a"\nsmall_files_to_flash.hdd_pool = "spare"', SOUND,
     ("scopes", 0, "small_files_to_flash", "hdd_pool"), "pool 'spare' of lustre has no targets: lctl pool_add", True),
], ids=["missing", "small files go to MDTs", "once for all scopes", "empty"])
def test_a_pool_that_is_not_there_is_named_with_those_that_are(
        text: str, node: Node, location: tuple[str | int, ...], sentence: str, fatal: bool) -> None:
    (one,) = found(text, node)
    assert (one.location, one.sentence, one.fatal) == (location, sentence, fatal)


def test_a_mount_that_hides_opt_outs_is_named() -> None:
    unsupported = raising(of_errno(errno.EOPNOTSUPP, "get user.tierd", "/"))
    hiding = replace(SOUND, filesystem=lambda: SimpleNamespace(**vars(MOUNTED) | {"xattr": unsupported}))
    (one,) = found("", hiding)
    assert (one.location, one.fatal) == (("filesystem", "mount"), True)
    assert "mount it with -o user_xattr" in one.sentence
    (allowed,) = found("[act]\nwithout_user_xattr = true", hiding)
    assert not allowed.fatal


def test_metadata_targets_that_the_client_does_not_know() -> None:
    text = '[sense]\nmdts = ["MDT0000", "MDT0007"]\n[sense.readers]\nMDT0007 = "cl1"'
    assert {each.location for each in found(text)} == {("sense", "mdts", 1), ("sense", "readers", "MDT0007")}


def test_a_scope_that_applies_to_nothing_is_a_warning() -> None:
    text = '[[scopes]]\npath = "/proj"\n[[scopes]]\npath = "/mnt/lustre/porj/"\n'
    (one,) = found(text, replace(SOUND, exists={"/mnt/lustre/proj"}.__contains__))
    assert (one.location, one.fatal) == (("scopes", 1, "path"), False)
    assert one.sentence == "there is no /mnt/lustre/porj now, so this scope applies to nothing"
    assert [each.location for each in found(text, replace(SOUND, filesystem=failing))] == [("filesystem", "mount")]


def test_without_a_file_system_the_mount_is_reported_and_nothing_else() -> None:
    (one,) = found('[sense]\nmdts = ["MDT0000"]', replace(SOUND, filesystem=failing, mdts=failing))
    assert (one.location, one.sentence) == (("filesystem", "mount"),
                                            "no Lustre file system at /mnt/lustre: not mounted")


def test_missing_programs_and_libraries() -> None:
    bare = replace(SOUND, program=lambda name: None, library=failing)
    assert {each.location for each in found("", bare)} == {("movers", "lfs"), ("movers", "library")}


def test_servers_that_do_not_answer_are_warnings() -> None:
    with liar(answers("lustre_up 1\n")) as exporter:
        text = f'[sense]\nexporters = ["{exporter.url}/metrics", "http://127.0.0.1:1/metrics"]'
        node = replace(SOUND, fetch=this_node(parse(text.encode(), "t.toml")).fetch)
        (one,) = found(text, node)
        text += '\n[sense.exporter_access]\nuser = "u"\npassword_file = "/none/such"'
        node = replace(SOUND, fetch=this_node(parse(text.encode(), "t.toml")).fetch)
        assert ["/none/such" in each.sentence for each in found(text, node)] == [True, True]
    assert one.location == ("sense", "exporters", 1)
    assert one.sentence.startswith("no answer: http://127.0.0.1:1/metrics: ")
    assert not one.fatal


def test_the_command_reports_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tierd.toml"
    path.write_text(f'[act]\ndry_run = true\n[filesystem]\nmount = "{tmp_path}"\n')
    assert main(["--config", str(path), "--check-config", "--online"]) == 1
    shown = capsys.readouterr().err
    assert f"{path}:4: filesystem.mount: no Lustre file system at {tmp_path}" in shown
    with pytest.raises(SystemExit):
        main(["--config", str(path), "--online"])
