"""The changelog device. A file with one byte for each record takes its place: its offsets are then indexes."""

import os
from pathlib import Path

import pytest

from lustre.changelog.device import ChangelogDevice

LIMIT = 1 << 20


class Log:
    """A changelog whose open descriptors do not see later records, as with a real one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.device = ChangelogDevice(str(path))

    def write(self, records: bytes) -> None:
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(records)

    @property
    def descriptors(self) -> int:
        places = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
        return sum(place.startswith(str(self.path)) for place in places)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "changelog")


def test_the_device_is_open_until_the_end_is_reached(log: Log) -> None:
    log.write(bytes(3 * LIMIT))
    assert len(log.device.read(-1)) == LIMIT
    log.write(b"x" * 4 * LIMIT)
    assert log.device.read(LIMIT - 1) == bytes(LIMIT), "of the same descriptor"
    assert log.descriptors == 1
    assert log.device.read(2 * LIMIT - 1, 2 * LIMIT) == bytes(LIMIT)
    assert log.descriptors == 0


def test_the_end_is_returned_once_without_opening_the_device(log: Log) -> None:
    log.write(b"abc")
    assert log.device.read(-1) == b"abc"
    log.write(b"abcde")
    assert log.device.read(2) == b""
    assert log.device.read(2) == b"de"
    assert log.device.read(4) == b""
    assert log.device.read(4) == b"", "looked again"
    log.write(b"abcdefg")
    assert log.device.read(4) == b"fg"


def test_a_call_from_another_position_looks_again(log: Log) -> None:
    log.write(bytes(2 * LIMIT))
    log.device.read(-1)
    log.write(b"x" * 2 * LIMIT)
    assert log.device.read(99, LIMIT)[:9] == b"x" * 9
    log.write(b"abc")
    assert log.device.read(-1) == b"abc"
    assert log.device.read(1) == b"c", "not the end: it was asked for less"


def test_after_an_error_the_device_is_opened_again(log: Log) -> None:
    with pytest.raises(FileNotFoundError, match="read changelog"):
        log.device.read(-1)
    log.write(b"abc")
    assert log.device.read(-1) == b"abc"
    assert log.descriptors == 0


def test_a_client_that_begins_below_the_position_is_asked_again(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one before 2.14.52 may do, which has begun to read before it knows the position."""
    log.write(bytes(2 * LIMIT) + b"new")
    seek, lost_races = os.lseek, [True] * 3

    def lseek(descriptor: int, offset: int, whence: int) -> int:
        return seek(descriptor, 0 if whence == os.SEEK_SET and lost_races and lost_races.pop() else offset, whence)

    monkeypatch.setattr(os, "lseek", lseek)
    assert log.device.read(2 * LIMIT - 1) == b"new"
    assert log.device.read(2 * LIMIT + 2) == b""
    lost_races += [True] * 99
    assert log.device.read(2 * LIMIT - 1) == bytes(LIMIT), "in the end it is believed: who asked sees that"
