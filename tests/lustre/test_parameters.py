"""Where parameters are found, what device names say, and reading to the end."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre import parameters
from lustre.parameters import Device, Roots, Tree, read_whole

MOUNT = "ff1100011d6c9800"


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_the_first_root_that_has_a_parameter_wins(tmp_path: Path) -> None:
    tree = Tree(Roots.of(tmp_path / "proc", tmp_path / "sys", tmp_path / "dbg"))
    write(tmp_path / "proc/fs/lustre/osc/a/state", b"proc")
    assert tree.read("osc/a/state") == b"proc"
    write(tmp_path / "dbg/lustre/osc/a/state", b"debug")
    assert tree.read("osc/a/state") == b"debug"
    write(tmp_path / "sys/fs/lustre/osc/a/state", b"sys")
    assert tree.read("osc/a/state") == b"sys"
    write(tmp_path / "dbg/lustre/osc/b/stats", b"")
    write(tmp_path / "dbg/lustre/osc/no_device", b"")
    assert tree.devices("osc") == ("a", "b")
    assert tree.closed() == {}


@pytest.mark.parametrize(("name", "device"), [
    (f"lustre-MDT0001-mdc-{MOUNT}", Device("lustre", "MDT0001", "mdc", MOUNT)),
    (f"lustre-{MOUNT}", Device("lustre", "", "", MOUNT)),
    (f"my-own-fs-OST00ff-osc-{MOUNT}", Device("my-own-fs", "OST00ff", "osc", MOUNT)),
    (f"lustre-clilov-{MOUNT}", Device("lustre", "", "clilov", MOUNT)),
    (f"lustre-clilmv-{MOUNT}", Device("lustre", "", "clilmv", MOUNT)),
    ("lustre-MDT0001-osp-MDT0000", Device("lustre", "MDT0001", "osp", "MDT0000")),
    ("lustre-MDT0000-lwp-OST0003", Device("lustre", "MDT0000", "lwp", "OST0003")),
    ("lustre-MDT0000-mdtlov", Device("lustre", "MDT0000", "mdtlov", "")),
    ("lustre-QMT0000", Device("lustre", "QMT0000", "", "")),
    ("filter-lustre-OST0002_UUID", Device("lustre", "OST0002", "filter", "")),
    ("MGS", Device("", "", "MGS", "")),
    ("MGC10.0.2.15@tcp", Device("", "", "MGC10.0.2.15@tcp", "")),
])
def test_device_names_have_file_system_target_kind_and_instance(name: str, device: Device) -> None:
    assert parameters.parse_device(name) == device


@given(name=st.text(max_size=80))
def test_any_device_name_is_parsed(name: str) -> None:
    parameters.parse_device(name)


def test_a_short_read_is_not_the_end(tmp_path: Path) -> None:
    pipe = tmp_path / "stats"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            for record in (b"one\n", b"two\n", b"three\n"):
                file.write(record)

    writer = threading.Thread(target=write)
    writer.start()
    assert read_whole(pipe) == b"one\ntwo\nthree\n"
    writer.join()


def test_empty_is_not_absent(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert read_whole(tmp_path / "empty") == b""
    assert read_whole(tmp_path / "none") is None
    assert read_whole(tmp_path / "empty" / "below") is None


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "stats").write_bytes(b"x")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        read_whole(tmp_path / "stats")
        read_whole(tmp_path / "none")
        with pytest.raises(IsADirectoryError):
            read_whole(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("read", [
    read_whole, parameters.read_line, lambda path: parameters.read_through(path, lambda _: None)])
def test_a_text_without_an_end_is_given_up(tmp_path: Path, read: Callable[[Path], object]) -> None:
    endless = tmp_path / "job_stats"
    with endless.open("wb") as file:
        file.truncate(parameters.MOST_BYTES + 2 * parameters.CHUNK_BYTES + 1)
    with pytest.raises(OSError, match="does not end within 256 MiB") as caught:
        read(endless)
    assert caught.value.filename == endless
