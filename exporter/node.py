"""What a collector sees of this node in one pass, and the account of what it read and could not read.

A parameter is named by its three parts (``osc``, the device, ``rpc_stats``); where it lives is looked up once and
remembered until it is no longer there. Nothing is held open.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from exporter.families import label_text
from exporter.mounts import MountNames, Mounts
from exporter.pools import Membership, PoolReader
from lustre.read import read_whole
from lustre.text import df
from lustre.text.df import Df
from lustre.tree import Device, Tree, parse_device

integer = lru_cache(maxsize=8192)(df.integer)
"""Thousands of parameters hold the same few numbers from scrape to scrape."""


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


class Places:
    """Where each parameter was last found, and what device names mean; lives as long as the exporter."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.mount_names = MountNames()
        self.pool_reader = PoolReader()
        self._found: dict[str, dict[str, str]] = {}
        self._listings: dict[str, tuple[tuple[str, ...], tuple[Target, ...]]] = {}

    def devices(self, kind: str) -> tuple[Target, ...]:
        """The devices of a kind, as they are now. When they change, all is looked up anew."""
        names = self.tree.devices(kind)
        before = self._listings.get(kind)
        if before is not None and before[0] == names:
            return before[1]
        self._found.pop(kind, None)
        parsed = tuple([Target(name, parse_device(name)) for name in names])
        self._listings[kind] = (names, parsed)
        return parsed

    def read(self, kind: str, device: str, name: str) -> bytes | None:
        """The parameter's text; None when it is absent."""
        found = self._found.setdefault(kind, {})
        parameter = f"{device}/{name}"
        place = found.get(parameter)
        if place is not None:
            data = read_whole(place)
            if data is not None:
                return data
            found.pop(parameter, None)
        place = self.tree.path(f"{kind}/{parameter}")
        if place is None:
            return None
        found[parameter] = place
        return read_whole(place)


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

    def read(self, kind: str, device: str, name: str, *, may_be_empty: bool = False) -> bytes | None:
        """The parameter's text; None when it is absent, empty or unreadable (the last two are counted)."""
        try:
            data = self.survey.places.read(kind, device, name)
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

    def number(self, kind: str, device: str, name: str, parse: Callable[[bytes], int | None] = integer) -> int | None:
        """A parameter that holds one number; None when it is absent or holds something else (which is counted)."""
        data = self.read(kind, device, name)
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

    def clients(self, kind: str) -> list[Client]:
        """Devices of this node's mounts; not those a server holds to reach other servers."""
        mounts = self.survey.mounts(self)
        return [
            Client(name, device, mounts[device.fsname, device.instance])
            for name, device in self.survey.devices(kind)
            if (device.fsname, device.instance) in mounts
        ]

    def mounts(self) -> list[tuple[str, bytes]]:
        """Device and label text of each mount."""
        return [
            (client.name, label_text(fs=client.device.fsname, mount=client.mount)) for client in self.clients("llite")
        ]

    def room(self, kind: str, device: str) -> Df:
        """How full the device is. None of it is known when it does not say."""
        kilobytes = [self.number(kind, device, name) for name in ("kbytestotal", "kbytesfree", "kbytesavail")]
        size, free, avail = [None if number is None else number << 10 for number in kilobytes]
        return Df(size, free, avail, self.number(kind, device, "filestotal"), self.number(kind, device, "filesfree"))

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
    """
    first, *rest = name.split("/")
    return ".".join([kind, "*", first, *(["*"] if rest else []), *rest[1:]])
