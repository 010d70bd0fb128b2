"""Reading to the end, and what absence looks like."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lustre.read import CHUNK_BYTES, MOST_BYTES, read_line, read_through, read_whole


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


def test_longer_than_a_chunk(tmp_path: Path) -> None:
    data = os.urandom(2 * CHUNK_BYTES + 17)
    (tmp_path / "job_stats").write_bytes(data)
    assert read_whole(str(tmp_path / "job_stats")) == data


def test_empty_is_not_absent(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert read_whole(tmp_path / "empty") == b""
    assert read_whole(tmp_path / "none") is None
    assert read_whole(tmp_path / "empty" / "below") is None


def test_what_is_neither_is_raised(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_whole(tmp_path)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "stats").write_bytes(b"x")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        read_whole(tmp_path / "stats")
        read_whole(tmp_path / "none")
        with pytest.raises(IsADirectoryError):
            read_whole(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("read", [read_whole, read_line, lambda path: read_through(path, len)])
def test_a_text_without_an_end_is_given_up(tmp_path: Path, read: Callable[[Path], object]) -> None:
    endless = tmp_path / "job_stats"
    with endless.open("wb") as file:
        file.truncate(MOST_BYTES + 2 * CHUNK_BYTES + 1)
    with pytest.raises(OSError, match="does not end within 256 MiB") as caught:
        read(endless)
    assert caught.value.filename == endless
