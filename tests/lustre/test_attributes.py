"""Inode flags and projects of open files, with and without the requests of Lustre."""

import errno
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lustre import attributes
from lustre.filesystem import FileFlags
from lustre.llapi.statx import shown_flags

PROJECT = struct.Struct("=IIII256x")
ATTRIBUTES = struct.Struct("=IIIII8x")
LL_IOC_PROJECT, FS_IOC_FSGETXATTR = 0x411066FD, 0x801C581F


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    place = tmp_path / "file"
    place.touch()
    found = os.open(place, os.O_RDONLY)
    yield found
    os.close(found)


def answering(known: bool, asked: list[int]) -> Callable[..., bytes]:
    """An ioctl(2) of a file of project 7, by a client that knows ``LL_IOC_PROJECT``, or by an older one."""
    def ioctl(_: int, request: int, data: bytes) -> bytes:
        asked.append(request)
        if request == LL_IOC_PROJECT and not known:
            raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
        if request == LL_IOC_PROJECT:
            return PROJECT.pack(*PROJECT.unpack(data)[:1], 7, 0x200, 0)
        return ATTRIBUTES.pack(0x200, 0, 0, 7, 0)

    return ioctl


@pytest.mark.parametrize(("known", "requests"), [(True, [LL_IOC_PROJECT]),
                                                 (False, [LL_IOC_PROJECT, FS_IOC_FSGETXATTR])])
def test_a_project_is_read_without_a_request_where_the_release_can(known: bool, requests: list[int]) -> None:
    asked: list[int] = []
    assert attributes.project(0, answering(known, asked)) == 7
    assert asked == requests


def test_a_project_is_set_with_the_flags_that_the_file_has() -> None:
    asked: list[bytes] = []

    def ioctl(_: int, request: int, data: bytes) -> bytes:
        assert request == LL_IOC_PROJECT
        asked.append(data)
        return PROJECT.pack(2, 7, 0x200, 0)

    attributes.set_project(0, 4711, ioctl)
    assert [PROJECT.unpack(data) for data in asked] == [(2, 0, 0, 0), (1, 4711, 0x200, 0)]


def test_flags_of_a_file_on_an_ordinary_file_system(descriptor: int) -> None:
    assert attributes.inode_flags(descriptor) is FileFlags.NONE


def test_flags_that_a_file_system_does_not_show_are_not_taken_for_absent(descriptor: int) -> None:
    assert shown_flags(descriptor, 1 << 62) is None
    assert shown_flags(descriptor, 0) is not None
