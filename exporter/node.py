"""What a collector sees of this node in one pass, and the account of what it read and could not read.

A parameter is named by its three parts (``osc``, the device, ``rpc_stats``); where it lives is looked up once and
remembered until it is no longer there. Nothing is held open.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from exporter.families import label_text
from exporter.mounts import MountNames, Mounts
from exporter.pools import Membership, PoolReader
from lustre.read import read_line, read_through, read_whole
from lustre.text import df
from lustre.text.df import Df
from lustre.tree import Device, Tree, parse_device

integer = lru_cache(maxsize=8192)(df.integer)
"""Thousands of parameters hold the same few numbers from scrape to scrape."""

NAMED = frozenset({("lov", "pools"), ("lod", "pools"), ("lod", "pool"), ("mgs", "live")})
"""Folders of devices whose entries an administrator named: pools, file systems."""


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


class Client(NamedTuple):
    """A client's device of one target, or (target empty) of a whole mount."""

    name: str
    device: Device
    mount: str


class Target(NamedTuple):
    """A server's target."""

    name: str
    device: Device


@dataclass(slots=True)
class Tally:
    """What one collector has read since the exporter started."""

    bytes_read: int = 0
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    """By (parameter, error)."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Lines by parameter."""

    def error(self, parameter: str, name: str) -> None:
        """One reading failed."""
        self.errors[parameter, name] = self.errors.get((parameter, name), 0) + 1

    def skip(self, parameter: str, lines: int) -> None:
        """So many lines were not understood."""
        self.skipped[parameter] = self.skipped.get(parameter, 0) + lines


Read = Callable[[str], bytes | None]
"""``read_whole`` or ``read_line``."""

PASSES_WITHOUT_LOOKING = 10
"""For parameters that were not there the last time."""


class Places:
    """Where each parameter was last found, and what device names mean; lives as long as the exporter."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.mount_names = MountNames()
        self.pool_reader = PoolReader()
        self._found: dict[str, dict[str, dict[str, str]]] = {}
        """The folder of each parameter, by kind, name and device; whole paths would be megabytes."""
        self._listings: dict[str, tuple[tuple[str, ...], tuple[Target, ...]]] = {}
        self._missing: dict[str, set[tuple[str, str]]] = {}
        """Parameters that this release does not have: by kind, device and name."""
        self._patience: dict[str, int] = {}
        self._clients: dict[str, tuple[tuple[Target, ...], Mounts, tuple[Client, ...]]] = {}

    def devices(self, kind: str) -> tuple[Target, ...]:
        """The devices of a kind, as they are now. When they change, all is looked up anew."""
        names = self.tree.devices(kind)
        before = self._listings.get(kind)
        if before is not None and before[0] == names:
            self._remember_missing(kind)
            return before[1]
        self._found.pop(kind, None)
        self._missing.pop(kind, None)
        parsed = tuple([Target(name, parse_device(name)) for name in names])
        self._listings[kind] = (names, parsed)
        return parsed

    def clients(self, kind: str, devices: tuple[Target, ...], mounts: Mounts) -> tuple[Client, ...]:
        """Those of the devices that belong to a mount, with its name."""
        before = self._clients.get(kind)
        if before is not None and before[0] is devices and before[1] is mounts:
            return before[2]
        found = tuple([
            Client(name, device, mounts[device.fsname, device.instance])
            for name, device in devices
            if (device.fsname, device.instance) in mounts
        ])  # fmt: skip
        self._clients[kind] = devices, mounts, found
        return found

    def folders(self, kind: str, name: str) -> Mapping[str, str]:
        """Where the parameter was found, by device."""
        return self._found.setdefault(kind, {}).setdefault(sys.intern(name), {})

    def read(self, kind: str, device: str, name: str, read: Read = read_whole) -> bytes | None:
        """The parameter's text; None when it is absent."""
        folder = self.folders(kind, name).get(device)
        data = None if folder is None else read(folder + name)
        return self.look_for(kind, device, name) if data is None else data

    def look_for(self, kind: str, device: str, name: str) -> bytes | None:
        """The text of a parameter that is not where it was, or was never asked for; None when it is nowhere."""
        of_name = self._found.setdefault(kind, {}).setdefault(sys.intern(name), {})
        of_name.pop(device, None)
        missing = self._missing.get(kind)
        if missing is not None and (device, name) in missing:
            return None
        place = self.tree.path(f"{kind}/{device}/{name}")
        if place is None:
            if missing is not None:
                missing.add((device, name))
            return None
        of_name[device] = sys.intern(place.removesuffix(name))
        return read_whole(place)

    def _remember_missing(self, kind: str) -> None:
        """What a device lacks, once it has been there for a pass, is looked for only now and then."""
        left = self._patience.get(kind, 0)
        if kind not in self._missing or not left:
            self._missing[kind] = set()
        self._patience[kind] = left - 1 if left else PASSES_WITHOUT_LOOKING


class Survey:
    """One pass's view of the node, shared by its collectors: each thing is looked at once, when first asked for."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._devices: dict[str, tuple[Target, ...]] = {}
        self._mounts: Mounts | None = None
        self._membership: Membership | None = None

    def devices(self, kind: str) -> tuple[Target, ...]:
        """All devices of a kind."""
        if kind not in self._devices:
            self._devices[kind] = self.places.devices(kind)
        return self._devices[kind]

    def mounts(self, node: Node) -> Mounts:
        """The mount point of each of this node's client instances."""
        if self._mounts is None:
            self._mounts = self.places.mount_names.of(node)
        return self._mounts

    def membership(self, node: Node) -> Membership:
        """Which targets are in which pools."""
        if self._membership is None:
            self._membership = self.places.pool_reader.read(node)
        return self._membership


class Node:
    """The view of one collector; every reading goes into its tally."""

    def __init__(self, survey: Survey, tally: Tally) -> None:
        self.survey = survey
        self._tally = tally

    def read(
        self, kind: str, device: str, name: str, read: Read = read_whole, *, may_be_empty: bool = False
    ) -> bytes | None:
        """The parameter's text; None when it is absent, empty or unreadable (the last two are counted)."""
        try:
            data = self.survey.places.read(kind, device, name, read)
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
        """Hand over the parameter's text in pieces; False when it is absent or (which is counted) unreadable."""
        pieces = 0

        def count(piece: bytes) -> None:
            nonlocal pieces
            pieces += 1
            self._tally.bytes_read += len(piece)
            take(piece)

        places = self.survey.places
        folder = places.folders(kind, name).get(device)
        try:
            if folder is not None:
                whole = read_through(folder + name, count)
                if whole or pieces:
                    return whole
            data = places.look_for(kind, device, name)
        except OSError as error:
            self._tally.error(parameter_name(kind, name), errno.errorcode.get(error.errno or 0, "OSError"))
            return False
        if data is not None:
            count(data)
        return data is not None

    def read_each(
        self, kind: str, name: str, devices: Iterable[str], read: Read = read_whole
    ) -> Iterator[tuple[str, bytes]]:
        """Device and text of the same parameter of many, those left out for which ``read`` says None."""
        folders = self.survey.places.folders(kind, name)
        look_for, tally = self.survey.places.look_for, self._tally
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
        tree = self.survey.places.tree
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
        return self.survey.places.tree.children(f"{kind}/{device}/{folder}")

    def root_text(self, path: str) -> bytes:
        """A file of procfs outside Lustre's part (``mounts``); empty when there is none."""
        try:
            return read_whole(self.survey.places.tree.roots.procfs / path) or b""
        except OSError:
            return b""

    def clients(self, kind: str) -> tuple[Client, ...]:
        """Devices of this node's mounts; not those a server holds to reach other servers.

        The same object as in the pass before, when nothing was mounted or connected meanwhile.
        """
        return self.survey.places.clients(kind, self.survey.devices(kind), self.survey.mounts(self))

    def mounts(self) -> list[tuple[str, bytes]]:
        """Device and label text of each mount."""
        return [
            (client.name, label_text(fs=client.device.fsname, mount=client.mount)) for client in self.clients("llite")
        ]

    def room(self, kind: str, device: str) -> Df:
        """How full the device is. None of it is known when it does not say."""
        return self.rooms(kind, (device,))[device]

    def rooms(self, kind: str, devices: Collection[str]) -> dict[str, Df]:
        """How full each of many is."""
        size, free, avail, files, files_free = [dict(self.numbers(kind, name, devices)) for name in df.FILES]

        def kib(known: dict[str, int], device: str) -> int | None:
            return known[device] << 10 if device in known else None

        return {
            name: Df(kib(size, name), kib(free, name), kib(avail, name), files.get(name), files_free.get(name))
            for name in devices
        }

    def instances(self) -> list[tuple[str, str]]:
        """(fs, instance) of each of this node's mounts."""
        found = {
            (device.fsname, device.instance)
            for kind, names in (("llite", {""}), ("osc", {"osc"}), ("mdc", {"mdc"}))
            for _, device in self.survey.devices(kind)
            if device.kind in names and device.instance and not device.instance.startswith(("MDT", "OST"))
        }
        return sorted(found)

    def devices_of(self, kind: str, fsname: str, instance: str) -> list[str]:
        """Names of the devices of a kind that belong to one mount."""
        return [
            name for name, device in self.survey.devices(kind)
            if device.fsname == fsname and device.instance == instance
        ]  # fmt: skip

    def targets(self, kind: str) -> list[Target]:
        """Devices of this node's own targets (``obdfilter``, ``mdt``)."""
        return [t for t in self.survey.devices(kind) if t.device.target and not t.device.instance]

    def labelled_targets(self, kind: str) -> list[tuple[str, bytes]]:
        """Device and label text of each of this node's own targets."""
        return [(name, label_text(fs=device.fsname, target=device.target)) for name, device in self.targets(kind)]

    def every(self, kind: str) -> tuple[Target, ...]:
        """All devices of a kind, whosever they are."""
        return self.survey.devices(kind)

    def membership(self) -> Membership:
        """Which targets are in which pools."""
        return self.survey.membership(self)


def parameter_name(kind: str, name: str) -> str:
    """The parameter without its device and pool, as a label's value.

    >>> parameter_name("osc", "stats"), parameter_name("lov", "pools/a"), parameter_name("lod", "pool/a/spill_hit")
    ('osc.*.stats', 'lov.*.pools.*', 'lod.*.pool.*.spill_hit')
    >>> parameter_name("ost/OSS", "stats"), parameter_name("mdt/a-MDT0000/exports", "stats")
    ('ost.OSS.*.stats', 'mdt.*.exports.*.stats')
    """
    kinds = ["*" if parse_device(part).fsname else part for part in kind.split("/")]
    first, *rest = name.split("/")
    if (kind, first) in NAMED:
        rest[:1] = ["*"]
    return ".".join([*kinds, "*", first, *rest])
