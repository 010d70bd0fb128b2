"""Reading parameters on behalf of a collector: what cannot be read, or not be understood, is counted and left out."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from exporter.places import Places, Read
from exporter.tally import Tally, parameter_name
from lustre.formats import df
from lustre.parameters import read_line, read_through, read_whole

integer = lru_cache(maxsize=8192)(df.integer)
"""Thousands of parameters hold the same few numbers from scrape to scrape."""

@lru_cache(maxsize=8192)
def natural(data: bytes) -> int | None:
    r"""A number that cannot be below zero, unless it wrapped; then it is none.

    >>> natural(b"7\n"), natural(b"-7\n"), natural(b"18446744073709551609\n"), natural(b"7")
    (7, None, None, None)
    """
    value = df.integer(data)
    return value if value is not None and 0 <= value < WRAPPED else None


WRAPPED = 1 << 63
"""From here on a number of the kernel is one below zero that it printed as if it could not be."""


class Reader:
    """Reads for one collector; every reading goes into its tally."""

    def __init__(self, places: Places, tally: Tally) -> None:
        self._places = places
        self._tally = tally

    def read(
        self, kind: str, device: str, name: str, read: Read = read_whole, *, may_be_empty: bool = False
    ) -> bytes | None:
        """The parameter's text; None when it is absent, empty or unreadable (the last two are counted)."""
        try:
            data = self._places.read(kind, device, name, read)
        except OSError as error:
            self._tally.error(parameter_name(kind, name), errno.errorcode.get(error.errno or 0, "OSError"))
            return None
        if data is None:
            return None
        self._tally.bytes_read += len(data)
        if not data and not may_be_empty:
            self._tally.error(parameter_name(kind, name), "empty")
            return None
        return data

    def read_through(self, kind: str, device: str, name: str, take: Callable[[bytes], None]) -> bool:
        """Hand over the parameter's text in pieces; False when it is absent or (which is counted) unreadable.

        ``take`` may raise OSError for what it cannot be.
        """
        pieces = 0

        def count(piece: bytes) -> None:
            nonlocal pieces
            pieces += 1
            self._tally.bytes_read += len(piece)
            take(piece)

        places = self._places
        folder = places.folders(kind, name).get(device)
        try:
            if folder is not None:
                whole = read_through(folder + name, count)
                if whole or pieces:
                    return whole
            data = places.look_for(kind, device, name)
            if data is not None:
                count(data)
        except OSError as error:
            self._tally.error(parameter_name(kind, name), errno.errorcode.get(error.errno or 0, "OSError"))
            return False
        return data is not None

    def read_each(
        self, kind: str, name: str, devices: Iterable[str], read: Read = read_whole
    ) -> Iterator[tuple[str, bytes]]:
        """Device and text of the same parameter of many, those left out for which ``read`` says None."""
        folders = self._places.folders(kind, name)
        look_for, tally = self._places.look_for, self._tally
        for device in devices:
            try:
                folder = folders.get(device)
                data = None if folder is None else read(folder + name)
                if data is None:
                    data = look_for(kind, device, name)
            except OSError as error:
                tally.error(parameter_name(kind, name), errno.errorcode.get(error.errno or 0, "OSError"))
                continue
            if data:
                tally.bytes_read += len(data)
                yield device, data
            elif data is not None:
                tally.error(parameter_name(kind, name), "empty")

    def numbers(self, kind: str, name: str, devices: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Device and number of the same parameter of many, those left out for which ``number`` says None."""
        for device, data in self.read_each(kind, name, devices, read_line):
            value = natural(data)
            if value is None:
                self.skipped(kind, name, 1)
            else:
                yield device, value

    def read_of_node(self, name: str) -> bytes | None:
        """A parameter of no device (``health_check``), or of LNet (``lnet.stats``); None as in ``read``."""
        tree = self._places.tree
        beside = name.removeprefix("lnet.")
        place = tree.path(name.replace(".", "/")) if beside == name else tree.lnet_path(beside)
        if place is None:
            return None
        try:
            data = read_whole(place)
        except OSError as error:
            self._tally.error(name, errno.errorcode.get(error.errno or 0, "OSError"))
            return None
        self._tally.bytes_read += len(data or b"")
        if data == b"":
            self._tally.error(name, "empty")
        return data or None

    def number_of_node(self, name: str) -> int | None:
        """A parameter of no device that holds a number of things; None as in ``number``."""
        data = self.read_of_node(name)
        value = None if data is None else natural(data)
        if data is not None and value is None:
            self.skipped_of_node(name, 1)
        return value

    def skipped_of_node(self, name: str, lines: int) -> None:
        """Lines of a parameter of no device that were not understood."""
        if lines:
            self._tally.skip(name, lines)

    def number(self, kind: str, device: str, name: str, parse: Callable[[bytes], int | None] = natural) -> int | None:
        """A parameter that holds one number; None when it is absent or holds something else (which is counted).

        Nearly all are numbers or sizes of things, so that one below zero is taken for wrapped, not for a number.
        """
        data = self.read(kind, device, name, read_line)
        if data is None:
            return None
        value = parse(data)
        if value is None:
            self.skipped(kind, name, 1)
        return value

    def skipped(self, kind: str, name: str, lines: int) -> None:
        """Lines of a parameter that were not understood."""
        if lines:
            self._tally.skip(parameter_name(kind, name), lines)

    def children(self, kind: str, device: str, folder: str) -> tuple[str, ...]:
        """Names below a folder of a device."""
        return self._places.tree.children(f"{kind}/{device}/{folder}")

    def root_text(self, path: str) -> bytes:
        """A file of procfs outside Lustre's part (``mounts``); empty when there is none."""
        try:
            return read_whole(self._places.tree.roots.procfs / path) or b""
        except OSError:
            return b""
