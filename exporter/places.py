"""Where each parameter was last found, and what device names mean; remembered from pass to pass.

A parameter is named by its three parts (``osc``, the device, ``rpc_stats``); where it lives is looked up once and
remembered until it is no longer there. Nothing is held open.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

from exporter.mounts import MountNames, Mounts
from exporter.pools import PoolReader
from lustre.parameters import Device, Tree, parse_device, read_whole


class Client(NamedTuple):
    """A client's device of one target, or (target empty) of a whole mount."""

    name: str
    device: Device
    mount: str


class Target(NamedTuple):
    """A server's target."""

    name: str
    device: Device


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
