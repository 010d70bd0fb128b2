"""The mounts of this node, and the mount point of each of their devices.

Lustre names a client's devices after an address in kernel memory (``ff1100011d6c9800``), which changes at each mount.
Such a label would start new series at every reboot, so the label is the mount point. No kernel file shows both names.
``/proc/mounts`` lists mounts in the order of mounting, and the statistics of an instance show their start time, so the
exporter matches them by order.

>>> client_mounts(b"10.0.2.15@tcp:/lustre /mnt/a lustre rw 0 0")
[('lustre', '/mnt/a')]
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from operator import is_
from typing import NamedTuple

from exporter.reading import NamedDevice, ParameterReader
from lustre import mounts
from lustre.formats import header
from lustre.parameters import Device

Mounts = Mapping[tuple[str, str], str]
"""Mount point by (fs, instance)."""
Moment = tuple[int, bytes]
"""Seconds, and the digits of their fraction."""
_NEVER: Moment = (0, b"")
_MOUNT_LISTS = ("mounts", "self/mounts", "1/mounts")
"""Files with mounts. The first one that lists a client mount counts; in a container this may be that of process 1."""
_KINDS_OF_MOUNTS = {"llite": "", "osc": "osc", "mdc": "mdc"}
"""Kinds of devices that a mount has, and the kind in the names of its own."""
_DATED_PARAMETERS = (
    ("llite", ("stats", "read_ahead_stats")),
    ("mdc", ("stats", "rpc_stats", "md_stats")),
    ("osc", ("stats",)),
)
"""Parameters with a start time that are created while a file system is mounted."""


def client_mounts(text: bytes) -> list[tuple[str, str]]:
    """List (fs, mount point) of each client mount, oldest first. Server targets have the same type but no ``:/``."""
    return [(mount.fsname, os.fsencode(mount.path).decode("utf-8", "replace")) for mount in mounts.parse(text)]


class ClientDevice(NamedTuple):
    """A client's device for one target, or for a whole mount (empty target)."""

    name: str
    device: Device
    mount: str


class MountTable:
    """Remembers the mount of each instance, so that clearing a statistics file later cannot change it.

    Each method returns the object of the last pass if nothing has changed.
    """

    def __init__(self) -> None:
        self._listed: tuple[list[tuple[str, str]], list[tuple[str, str]]] | None = None
        self._mounts: Mounts = {}
        self._clients: dict[str, tuple[tuple[NamedDevice, ...], Mounts, tuple[ClientDevice, ...]]] = {}
        self._instances: tuple[list[tuple[NamedDevice, ...]], list[tuple[str, str]]] = [], []

    def mounts(self, reader: ParameterReader) -> Mounts:
        instances = self._instances_of(reader)
        views = (client_mounts(reader.root_text(path)) for path in _MOUNT_LISTS) if instances else ()
        listed = next(filter(None, views), [])
        if (instances, listed) != self._listed:
            self._mounts = dict(_assign(reader, instances, listed, self._mounts))
            self._listed = (instances, listed)
        return self._mounts

    def clients(self, kind: str, devices: tuple[NamedDevice, ...], mounts: Mounts) -> tuple[ClientDevice, ...]:
        before = self._clients.get(kind)
        if before is not None and before[0] is devices and before[1] is mounts:
            return before[2]
        found = tuple([
            ClientDevice(name, device, mounts[device.fsname, device.instance])
            for name, device in devices
            if (device.fsname, device.instance) in mounts
        ])  # fmt: skip
        self._clients[kind] = devices, mounts, found
        return found

    def _instances_of(self, reader: ParameterReader) -> list[tuple[str, str]]:
        devices = [reader.devices(kind) for kind in _KINDS_OF_MOUNTS]
        seen = self._instances
        if len(seen[0]) != len(devices) or not all(map(is_, seen[0], devices)):
            found = {
                (device.fsname, device.instance)
                for name, of_kind in zip(_KINDS_OF_MOUNTS.values(), devices, strict=True)
                for _, device in of_kind
                if device.kind == name and device.instance and not device.instance.startswith(("MDT", "OST"))
            }
            seen = self._instances = devices, sorted(found)
        return seen[1]


def _assign(
    reader: ParameterReader, instances: list[tuple[str, str]], listed: list[tuple[str, str]], before: Mounts
) -> Iterator[tuple[tuple[str, str], str]]:
    by_fs: dict[str, list[str]] = defaultdict(list)
    for fs, instance in instances:
        by_fs[fs].append(instance)
    for fs, of_fs in by_fs.items():
        points = list(dict.fromkeys(point for listed_fs, point in listed if listed_fs == fs))
        for instance, name in _match(reader, fs, of_fs, points):
            known = before.get((fs, instance), "")  # while a mount begins or ends, the others keep their names
            yield (fs, instance), known if name.isdigit() and known in points else name


def _match(reader: ParameterReader, fs: str, instances: list[str], points: list[str]) -> list[tuple[str, str]]:
    if len(instances) == 1:  # further mount points are bind mounts
        return [(instances[0], points[0] if points else "")]
    started = {instance: _counting_since(reader, fs, instance) for instance in instances}
    oldest_first = sorted(instances, key=lambda instance: (started[instance] or _NEVER, instance))
    if len(points) == len(instances) and all(started.values()):
        return list(zip(oldest_first, points, strict=True))
    return [(instance, str(number)) for number, instance in enumerate(oldest_first, 1)]


def _counting_since(reader: ParameterReader, fs: str, instance: str) -> Moment | None:
    """Return the start time of the instance's statistics; None for releases that do not show it."""
    starts: list[Moment] = []
    for kind, names in _DATED_PARAMETERS:
        for device in _devices_of(reader, kind, fs, instance):
            for name in names:
                start = header.split(reader.read(kind, device, name) or b"").start_time
                whole, _, fraction = start.partition(b".")
                if whole.isdigit():
                    starts.append((int(whole), fraction.ljust(9, b"0")))
    return min(starts, default=None)


def _devices_of(reader: ParameterReader, kind: str, fs: str, instance: str) -> list[str]:
    return [
        name for name, device in reader.devices(kind) if device.fsname == fs and device.instance == instance
    ]  # fmt: skip
