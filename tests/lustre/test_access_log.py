"""Entries of access logs, byte by byte as include/uapi/linux/lustre/lustre_access_log.h lays them out."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.access_log import ENTRY_BYTES, Access, AccessLogDevice, decode
from lustre.fid import Fid

BYTES = bytes.fromhex(
    "02040000 02000000 b3070000 00000000"  # FID [0x200000402:0x7b3:0x0]
    "0000100000000000 0000200000000000"  # from 1 MiB to 2 MiB
    "10a9fd6a00000000"  # time
    "00001000 01000000 01000000"  # 1 MiB in one segment, read
    "000000000000000000000000")


def test_an_entry_written_by_hand_behind_one_that_is_neither_read_nor_write() -> None:
    odd = BYTES[:48] + b"\x04\0\0\0" + BYTES[52:]
    (entry,) = decode(odd + BYTES)
    assert entry == Access(Fid(0x200000402, 0x7b3), 1 << 20, 2 << 20, 0x6afda910, 1 << 20, writes=False)


@given(st.binary(max_size=300))
def test_any_bytes_are_entries_or_an_error(data: bytes) -> None:
    try:
        assert len(decode(data)) <= len(data) // ENTRY_BYTES
    except ValueError:
        assert len(data) % ENTRY_BYTES


def test_the_device_is_read_without_waiting(tmp_path: Path) -> None:
    """A pipe stands in for the device: it gives nothing while it is empty, and ends when the other side does."""
    path = tmp_path / "lustre-OST0000"
    os.mkfifo(path)
    log = AccessLogDevice(str(path))
    kernel = os.open(path, os.O_WRONLY)
    assert log.read(1 << 20) == (b"", False)
    os.write(kernel, BYTES * 3)
    assert log.read(1 << 20) == (BYTES * 3, False)
    assert log.dropped() == 0
    os.write(kernel, BYTES)
    os.close(kernel)
    assert log.read(1 << 20) == (BYTES, False)
    assert log.read(1 << 20) == (b"", True)
    log.close()


def test_an_absent_access_log_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match="lustre-OST0000"):
        AccessLogDevice("/nowhere/lustre-OST0000")
