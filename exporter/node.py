"""The node during a scrape: its devices, mounts, targets and pools, and their parameters.

:class:`ParameterIndex` remembers the folder of each parameter between scrapes; no file is kept open.
:class:`NodeSnapshot` is the view of one scrape, :class:`Node` that of one collector. A parameter that cannot be read
or parsed is counted (:class:`ReadStats`) and left out.

Lustre names a client's devices after an address in kernel memory (``ff1100011d6c9800``), which changes at each mount.
Such a label would start new series at every reboot, so the label is the mount point. No kernel file shows both names.
``/proc/mounts`` lists mounts in the order of mounting, and the statistics of an instance show their start time, so the
exporter matches them by order.

>>> client_mounts(b"10.0.2.15@tcp:/lustre /mnt/a lustre rw 0 0")
[('lustre', '/mnt/a')]

Pools come from ``lov.*.pools`` on a client and from ``lod.*.pools`` on a metadata server.
"""

from __future__ import annotations

import errno
import re
import sys
import threading
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import is_
from typing import NamedTuple

from exporter.exposition import label_text
from lustre import parameters as parameters_module
from lustre.formats import df, header, pools
from lustre.formats.compiled import following, mark_below_times
from lustre.formats.df import Df
from lustre.parameters import Device, Tree, parse_device, read_line, read_through, read_whole

NAMED_BY_ADMINISTRATOR = frozenset({("lov", "pools"), ("lod", "pools"), ("lod", "pool"), ("mgs", "live")})
"""Folders in which an administrator chose the names of the entries: pools, file systems."""


@dataclass(slots=True)
class ReadStats:
    """Statistics of one collector's reads since the exporter started."""

    bytes_read: int = 0
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    """Number of failed reads by (parameter, error)."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Number of skipped lines by parameter."""
    implausible: dict[str, int] = field(default_factory=dict)
    """Number of values left out of sums, by parameter, because no target can do so much."""

    def error(self, parameter: str, name: str) -> None:
        """Count a failed read."""
        self.errors[parameter, name] = self.errors.get((parameter, name), 0) + 1

    def skip(self, parameter: str, lines: int) -> None:
        """Count lines that were not understood."""
        self.skipped[parameter] = self.skipped.get(parameter, 0) + lines


def parameter_name(kind: str, name: str) -> str:
    """Return the name of a parameter as a label value, without its device and pool.

    >>> parameter_name("osc", "stats"), parameter_name("lov", "pools/a"), parameter_name("lod", "pool/a/spill_hit")
    ('osc.*.stats', 'lov.*.pools.*', 'lod.*.pool.*.spill_hit')
    >>> parameter_name("ost/OSS", "stats"), parameter_name("mdt/a-MDT0000/exports", "stats")
    ('ost.OSS.*.stats', 'mdt.*.exports.*.stats')
    """
    kinds = ["*" if parse_device(part).fsname else part for part in kind.split("/")]
    first, *rest = name.split("/")
    if (kind, first) in NAMED_BY_ADMINISTRATOR:
        rest[:1] = ["*"]
    return ".".join([*kinds, "*", first, *rest])


class AbandonedError(Exception):
    """The pass of this thread was abandoned while it read a parameter. Another thread collects in its place."""


Reading = tuple[str, str, str]
"""A read in progress: kind, device (empty for a parameter without one), and name. Each read has its own object."""


HANGING = "hanging"
"""Name of the error of a read that has not returned."""


def reading_name(reading: Reading) -> str:
    """Return the parameter of a read as a label value."""
    kind, device, name = reading
    return parameter_name(kind, name) if device else name


class HangingReads:
    """Reads that have not returned, each of which keeps a thread. Their devices are not read until they return."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reads: dict[tuple[str, str], Reading] = {}

    def add(self, reading: Reading) -> bool:
        """Add a read. Returns False if there are too many."""
        with self._lock:
            if len(self._reads) >= MAX_HANGING:
                return False
            self._reads[reading[:2]] = reading
            return True

    def remove(self, reading: Reading) -> None:
        """Remove a read, because it has returned."""
        with self._lock:
            self._reads.pop(reading[:2], None)

    def devices(self, kind: str) -> frozenset[str]:
        """Return the devices of a kind that are not read."""
        return frozenset([device for of_kind, device in [*self._reads] if of_kind == kind]) if self._reads else NONE

    def all(self) -> list[Reading]:
        """Return the reads that have not returned."""
        with self._lock:
            return [*self._reads.values()]


MAX_HANGING = 32
"""Limit on threads that wait for a read to return."""
NONE: frozenset[str] = frozenset()


class Batch:
    """A read of parameters of many devices in progress."""

    __slots__ = ("_seen", "devices", "kind", "names", "progress")

    def __init__(self, kind: str, names: tuple[str, ...], devices: list[str]) -> None:
        self.kind = kind
        self.names = names
        self.devices = devices
        self.progress = bytearray(b"\xff" * 8)
        """Position of the file that is being read (device times names, plus name); -1 before and after. The C module
        writes it."""
        self._seen: tuple[int, Reading] | None = None

    def reading(self) -> Reading | None:
        """Return the read in progress: the same object as long as it is the same read."""
        position = int.from_bytes(self.progress, sys.byteorder, signed=True)
        if position < 0:
            return None
        if self._seen is None or self._seen[0] != position:
            device, name = divmod(position, len(self.names))
            self._seen = position, (self.kind, self.devices[device], self.names[name])
        return self._seen[1]


def listing_of(kind: str) -> Reading:
    """The listing of the devices of a kind, as a read in progress."""
    return f"{kind}/", "", parameter_name(kind, "").rstrip(".")


class PassState:
    """The read in progress of one pass of a collector. The pass can be abandoned if this read does not return."""

    __slots__ = ("_left", "abandoned", "batch", "hanging", "one")

    def __init__(self, hanging: HangingReads) -> None:
        self.hanging = hanging
        self.one: Reading | None = None
        self.batch: Batch | None = None
        self.abandoned = False
        self._left: Reading | None = None
        """The read in which the pass was abandoned."""

    @property
    def reading(self) -> Reading | None:
        """The read in progress: the same object as long as it is the same read."""
        batch = self.batch
        return self.one if batch is None else batch.reading()

    def abandon(self, reading: Reading) -> bool:
        """Leave the thread of this pass behind in this read. Returns False if too many threads are left behind."""
        if not self.hanging.add(reading):
            return False
        self._left = reading
        self.abandoned = True
        if self.reading is not reading:  # it returned meanwhile
            self.hanging.remove(reading)
        return True

    def returned(self) -> None:
        """Record that the read returned. Raises AbandonedError if the pass was abandoned."""
        self.one = self.batch = None
        if self.abandoned:
            if self._left is not None:
                self.hanging.remove(self._left)
            raise AbandonedError


Mounts = Mapping[tuple[str, str], str]
"""Mount point by (fs, instance)."""
Moment = tuple[int, bytes]
"""Seconds, and the digits of their fraction."""
_NEVER: Moment = (0, b"")
_CLIENT = re.compile(rb"^\S*:/([^/\s]+)\S* (\S+) lustre ", re.MULTILINE)
_OCTAL = re.compile(rb"\\([0-7]{3})")
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
    return [(_text(fs), _text(path)) for fs, path in _CLIENT.findall(text)]


def _text(field: bytes) -> str:
    return _OCTAL.sub(lambda octal: bytes((int(octal[1], 8) & 0xFF,)), field).decode("utf-8", "replace")


class MountNames:
    """Remembers the mount of each instance, so that clearing a statistics file later cannot change it."""

    def __init__(self) -> None:
        self._seen: tuple[list[tuple[str, str]], list[tuple[str, str]]] | None = None
        self._names: Mounts = {}

    def mounts(self, node: Node) -> Mounts:
        """Return the mount point of every instance on this node."""
        instances = node.instances()
        views = (client_mounts(node.root_text(path)) for path in _MOUNT_LISTS) if instances else ()
        listed = next(filter(None, views), [])
        if (instances, listed) != self._seen:
            self._names = dict(_assign(node, instances, listed))
            self._seen = (instances, listed)
        return self._names


def _assign(
    node: Node, instances: list[tuple[str, str]], listed: list[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], str]]:
    by_fs: dict[str, list[str]] = defaultdict(list)
    for fs, instance in instances:
        by_fs[fs].append(instance)
    for fs, of_fs in by_fs.items():
        points = list(dict.fromkeys(point for listed_fs, point in listed if listed_fs == fs))
        for instance, name in _match(node, fs, of_fs, points):
            yield (fs, instance), name


def _match(node: Node, fs: str, instances: list[str], points: list[str]) -> list[tuple[str, str]]:
    if len(instances) == 1:  # further mount points are bind mounts
        return [(instances[0], points[0] if points else "")]
    born = {instance: _counting_since(node, fs, instance) for instance in instances}
    eldest_first = sorted(instances, key=lambda instance: (born[instance] or _NEVER, instance))
    if len(points) == len(instances) and all(born.values()):
        return list(zip(eldest_first, points, strict=True))
    return [(instance, str(number)) for number, instance in enumerate(eldest_first, 1)]


def _counting_since(node: Node, fs: str, instance: str) -> Moment | None:
    """Return the start time of the instance's statistics; None for releases that do not show it."""
    starts: list[Moment] = []
    for kind, names in _DATED_PARAMETERS:
        for device in node.devices_of(kind, fs, instance):
            for name in names:
                start = header.split(node.read(kind, device, name) or b"").start_time
                whole, _, fraction = start.partition(b".")
                if whole.isdigit():
                    starts.append((int(whole), fraction.ljust(9, b"0")))
    return min(starts, default=None)


@dataclass(frozen=True, slots=True)
class PoolMembership:
    """Pools of each file system, with their targets (``OST0003``)."""

    pools: Mapping[str, Mapping[str, frozenset[str]]]
    by_target: Mapping[tuple[str, str], tuple[str, ...]]
    """The pools of a target, sorted; usually one."""

    def label(self, fs: str, target: str) -> str:
        """Return the pools of a target as one label value: empty, a name, or names joined by commas."""
        return ",".join(self.by_target.get((fs, target), ()))


PoolTargets = dict[str, frozenset[str]]


class PoolReader:
    """Reads the lists of pools, and parses only changed lists."""

    def __init__(self) -> None:
        self._parsed: dict[bytes, tuple[frozenset[str], int]] = {}
        self._membership = PoolMembership({}, {})

    def membership(self, node: Node) -> PoolMembership:
        """Return the pools as clients see them or, without a client, as metadata targets see them."""
        found: dict[str, PoolTargets] = {}
        kept: dict[bytes, tuple[frozenset[str], int]] = {}
        for kind, wanted in (("lov", "clilov"), ("lod", "mdtlov"), ("lov", "mdtlov")):
            for name, device in node.devices(kind):
                if (
                    device.kind == wanted
                    and device.fsname not in found
                    and (lists := self._pools(node, kind, name, kept))
                ):
                    found[device.fsname] = lists
        self._parsed = kept
        membership = self._membership
        if found != membership.pools:  # a late reader must not replace the view of other readers
            membership = self._membership = PoolMembership(found, _by_target(found))
        return membership

    def _pools(self, node: Node, kind: str, device: str, kept: dict[bytes, tuple[frozenset[str], int]]) -> PoolTargets:
        lists: PoolTargets = {}
        if node.is_hanging(kind, device):  # without its pools, the targets would move to other sums
            return dict(self._membership.pools.get(parse_device(device).fsname, {}))
        for pool in node.children(kind, device, "pools"):
            data = node.read(kind, device, f"pools/{pool}", may_be_empty=True)
            if data is None:
                continue
            if data not in kept:
                kept[data] = self._parsed.get(data) or _members(data)
            lists[pool], skipped = kept[data]
            node.skipped(kind, f"pools/{pool}", skipped)
        return lists


def _members(data: bytes) -> tuple[frozenset[str], int]:
    listed = pools.parse(data)
    return frozenset(parse_device(member).target or member for member in listed.members), listed.skipped


def _by_target(found: Mapping[str, PoolTargets]) -> dict[tuple[str, str], tuple[str, ...]]:
    by_target: dict[tuple[str, str], list[str]] = defaultdict(list)
    for fs, lists in found.items():
        for pool in sorted(lists):
            for target in lists[pool]:
                by_target[fs, target].append(pool)
    return {key: tuple(names) for key, names in by_target.items()}


class ClientDevice(NamedTuple):
    """A client's device for one target, or for a whole mount (empty target)."""

    name: str
    device: Device
    mount: str


class NamedDevice(NamedTuple):
    """A server's target."""

    name: str
    device: Device


ReadParameter = Callable[[str], bytes | None]
"""``read_whole`` or ``read_line``."""
BATCH_DEVICES = 256
"""Number of devices whose texts are read, and in memory, at a time."""
PASSES_BEFORE_RETRY = 10
"""Number of passes between searches for a missing parameter."""


Part = tuple[bytes, ...] | Callable[[bytes], bytes]
"""The part of a text that counts: the rest of the line after each key, or the result of a function."""
BELOW_TIMES: Part = ()
"""The text after the header. The times in the header change at every reading."""
MARK_BITS = (1 << 64) - 1


class Texts:
    """One parameter of many devices, and marks of the last texts, by which unchanged texts are recognized."""

    def __init__(self, kind: str, name: str, part: Part = BELOW_TIMES) -> None:
        self.kind = kind
        self.name = name
        self.part = part
        self.devices: list[str] = []
        self.marks = array("Q")
        """Mark of the last text of each device. 0 if it is unknown, so that the next text counts as changed."""
        self.present = bytearray()
        """Whether each device had a text in the last pass."""

    def set_devices(self, devices: list[str]) -> list[int | None]:
        """Change the devices. Returns the previous position of each device; None for a new one."""
        before = {device: position for position, device in enumerate(self.devices)}
        moved = [before.get(device) for device in devices]
        self.marks = array("Q", [0 if at is None else self.marks[at] for at in moved])
        self.present = bytearray([0 if at is None else self.present[at] for at in moved])
        self.devices = devices
        return moved

    def forget(self, position: int) -> None:
        """Forget the text of a device, as if the device were new."""
        self.marks[position] = self.present[position] = 0

    def mark_of(self, text: bytes) -> int:
        """Return the mark of a text, never 0. It differs from the mark of the C module that reads files."""
        part = self.part
        if callable(part):
            value = hash(part(text))
        elif part:
            parts = following(text, part)
            value = hash(b"\n".join(parts) if all(parts) else text)
        else:
            value = mark_below_times(text)
        return value & MARK_BITS or 1


class ParameterIndex:
    """Cache of the folder of each parameter and of parsed device names between passes."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.hanging = HangingReads()
        self.mount_names = MountNames()
        self.pool_reader = PoolReader()
        self._found: dict[str, dict[str, dict[str, str]]] = {}
        """The folder of each parameter, by kind, name and device; whole paths would be megabytes."""
        self._listings: dict[str, tuple[tuple[str, ...], tuple[NamedDevice, ...]]] = {}
        self._missing: dict[str, dict[str, set[str]]] = {}
        """Devices that do not have a parameter, by kind and name."""
        self._passes_left: dict[str, int] = {}
        self._clients: dict[str, tuple[tuple[NamedDevice, ...], Mounts, tuple[ClientDevice, ...]]] = {}
        self._instances: tuple[list[tuple[NamedDevice, ...]], list[tuple[str, str]]] = [], []

    def devices(self, kind: str) -> tuple[NamedDevice, ...]:
        """Return the present devices of a kind. If they changed, their parameters are located again."""
        names = self.tree.devices(kind)
        before = self._listings.get(kind)
        if before is not None and before[0] == names:
            self._remember_missing(kind)
            return before[1]
        self._found.pop(kind, None)
        self._missing.pop(kind, None)
        parsed = tuple([NamedDevice(name, parse_device(name)) for name in names])
        self._listings[kind] = (names, parsed)
        return parsed

    def known_devices(self, kind: str) -> tuple[NamedDevice, ...]:
        """Return the devices of a kind that the last listing found."""
        before = self._listings.get(kind)
        return () if before is None else before[1]

    def file_systems(self) -> set[str]:
        """Return the file systems of the mounts and targets that the last pass found."""
        listed = [listing for kind in ("llite", "obdfilter", "mdt", "osc") if (listing := self._listings.get(kind))]
        return {device.fsname for _, devices in listed for _, device in devices if device.fsname}

    def clients(self, kind: str, devices: tuple[NamedDevice, ...], mounts: Mounts) -> tuple[ClientDevice, ...]:
        """Return the devices that belong to a mount, with its mount point."""
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

    def instances(self, devices: list[tuple[NamedDevice, ...]]) -> list[tuple[str, str]]:
        """Return (fs, instance) of each mount, from the devices of ``_KINDS_OF_MOUNTS``."""
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

    def folders(self, kind: str, name: str) -> dict[str, str]:
        """Return the folder of a parameter by device."""
        return self._found.setdefault(kind, {}).setdefault(sys.intern(name), {})

    def read(self, kind: str, device: str, name: str, read: ReadParameter = read_whole) -> bytes | None:
        """Read the text of a parameter; None if it is absent."""
        folder = self.folders(kind, name).get(device)
        data = None if folder is None else read(folder + name)
        return self.locate(kind, device, name) if data is None else data

    def locate(self, kind: str, device: str, name: str) -> bytes | None:
        """Locate a parameter and read its text; None if it does not exist."""
        self.folders(kind, name).pop(device, None)
        folder = self._locate(kind, device, name)
        return None if folder is None else read_whole(folder + name)

    def _locate(self, kind: str, device: str, name: str) -> str | None:
        missing = self._missing.get(kind)
        if missing is not None and device in missing.get(name, ()):
            return None
        place = self.tree.path(f"{kind}/{device}/{name}")
        if place is None:
            if missing is not None:
                missing.setdefault(name, set()).add(device)
            return None
        folder = self.folders(kind, name)[device] = sys.intern(place.removesuffix(name))
        return folder

    def parent(self, kind: str, name: str, devices: Iterable[str], state: PassState) -> str | None:
        """Return the directory of the kind where the first device with the parameter has it; None if none has it."""
        folders = self.folders(kind, name)
        for device in devices:
            if folders:
                break
            state.one = kind, device, name
            self._locate(kind, device, name)
            state.returned()
        for device, folder in folders.items():
            return folder.removesuffix("/").removesuffix(device)
        return None

    def missing(self, kind: str, name: str) -> Collection[str]:
        """Return the devices in which a parameter was not found in an earlier pass, and is not searched now."""
        missing = self._missing.get(kind)
        return missing.get(name, ()) if missing else ()

    def _remember_missing(self, kind: str) -> None:
        """From the second pass of a device on, search for its missing parameters only once in several passes."""
        left = self._passes_left.get(kind, 0)
        if kind not in self._missing or not left:
            self._missing[kind] = {}
        self._passes_left[kind] = left - 1 if left else PASSES_BEFORE_RETRY


integer = lru_cache(maxsize=8192)(df.integer)
"""Size of the cache: thousands of parameters hold a few different numbers."""


@lru_cache(maxsize=8192)
def natural(data: bytes) -> int | None:
    r"""Parse a number that cannot be negative; None for a negative number, which has wrapped, and for any other text.

    >>> natural(b"7\n"), natural(b"-7\n"), natural(b"18446744073709551609\n"), natural(b"7")
    (7, None, None, None)
    """
    value = df.integer(data)
    return value if value is not None and 0 <= value < WRAPPED_FROM else None


WRAPPED_FROM = 1 << 63
"""Lower bound of the numbers that are negative numbers, printed as unsigned by the kernel."""


class ParameterReader:
    """Reads parameters for one collector, and counts the reads in ``ReadStats``."""

    def __init__(self, parameters: ParameterIndex, reads: ReadStats, state: PassState | None = None) -> None:
        self._parameters = parameters
        self._reads = reads
        self._state = state or PassState(parameters.hanging)

    def _is_hanging(self, kind: str, device: str, name: str) -> bool:
        """Whether an earlier read of this device has not returned, so that it is not read. This is counted."""
        hanging = device in self._parameters.hanging.devices(kind)
        if hanging:
            self._reads.error(parameter_name(kind, name) if device else name, HANGING)
        return hanging

    def read(
        self, kind: str, device: str, name: str, read: ReadParameter = read_whole, *, may_be_empty: bool = False
    ) -> bytes | None:
        """Read a parameter; None if it is absent, empty or unreadable. Empty and unreadable parameters are counted."""
        if self._is_hanging(kind, device, name):
            return None
        self._state.one = kind, device, name
        try:
            data = self._parameters.read(kind, device, name, read)
        except OSError as error:
            self._state.returned()
            self._reads.error(parameter_name(kind, name), errno.errorcode.get(error.errno or 0, "OSError"))
            return None
        self._state.returned()
        if data is None:
            return None
        self._reads.bytes_read += len(data)
        if not data and not may_be_empty:
            self._reads.error(parameter_name(kind, name), "empty")
            return None
        return data

    def read_through(self, kind: str, device: str, name: str, take: Callable[[bytes], None]) -> bool:
        """Pass a parameter to ``take`` in pieces; False if it is absent or unreadable. Unreadable ones are counted.

        ``take`` may raise OSError for an invalid text.
        """
        if self._is_hanging(kind, device, name):
            return False
        pieces = 0
        state = self._state

        def count(piece: bytes) -> None:
            nonlocal pieces
            state.returned()
            pieces += 1
            self._reads.bytes_read += len(piece)
            take(piece)
            state.one = kind, device, name

        parameters = self._parameters
        folder = parameters.folders(kind, name).get(device)
        state.one = kind, device, name
        try:
            if folder is not None:
                whole = read_through(folder + name, count)
                if whole or pieces:
                    state.returned()
                    return whole
            data = parameters.locate(kind, device, name)
            if data is not None:
                count(data)
        except OSError as error:
            state.returned()
            self._reads.error(parameter_name(kind, name), errno.errorcode.get(error.errno or 0, "OSError"))
            return False
        state.returned()
        return data is not None

    def read_each(self, kind: str, name: str, devices: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Read one parameter of many devices. Yields device and text, skipping devices where ``read`` returns None."""
        if parameters_module.read_many is None:
            yield from self._read_one_by_one(kind, name, devices)
            return
        names = [*devices]
        for position, data, _ in self._read_many(kind, name, names, None, array("Q"), bytearray(len(names))):
            if data is not None:
                yield names[position], data

    def changed(self, texts: Texts, quiet: Container[str] = ()) -> Iterator[tuple[int, bytes | None]]:
        """Read one parameter of many devices. Yields position and text of each device whose text has changed since the
        last pass, and position and None of each device whose text cannot be read any more.

        A text counts as known when the next one is asked for, so a text that could not be processed is yielded again.
        Devices in ``quiet`` whose text is known are not read.
        """
        marks, present = texts.marks, texts.present
        for position, data, mark in self._unknown(texts, quiet):
            if data is not None or present[position]:
                marks[position] = 0
                yield position, data
                marks[position], present[position] = mark, data is not None

    def _unknown(self, texts: Texts, quiet: Container[str]) -> Iterator[tuple[int, bytes | None, int]]:
        """Yield position, text and mark of each text with another mark than before; None and 0 if there is no text."""
        kind, name, devices, marks, part = texts.kind, texts.name, texts.devices, texts.marks, texts.part
        skip = bytearray(len(devices))
        if quiet:
            skip = bytearray([mark != 0 and device in quiet for device, mark in zip(devices, marks, strict=True)])
        if parameters_module.read_many is not None and not callable(part):
            yield from self._read_many(kind, name, devices, part, marks, skip)
            return
        left = {device: at for at, (device, skipped) in enumerate(zip(devices, skip, strict=True)) if not skipped}
        for device, data in self.read_each(kind, name, [*left]):
            position, mark = left.pop(device), texts.mark_of(data)
            if mark != marks[position]:
                yield position, data, mark
        for position in left.values():
            yield position, None, 0

    def _read_one_by_one(
        self, kind: str, name: str, devices: Iterable[str], read: ReadParameter = read_whole
    ) -> Iterator[tuple[str, bytes]]:
        folders = self._parameters.folders(kind, name)
        look_for, reads, state = self._parameters.locate, self._reads, self._state
        hanging = self._parameters.hanging.devices(kind)
        for device in devices:
            if device in hanging and self._is_hanging(kind, device, name):
                continue
            state.one = kind, device, name
            try:
                folder = folders.get(device)
                data = None if folder is None else read(folder + name)
                if data is None:
                    data = look_for(kind, device, name)
            except OSError as error:
                state.returned()
                reads.error(parameter_name(kind, name), errno.errorcode.get(error.errno or 0, "OSError"))
                continue
            if state.abandoned:
                state.returned()
            state.one = None
            if data:
                reads.bytes_read += len(data)
                yield device, data
            elif data is not None:
                reads.error(parameter_name(kind, name), "empty")

    def _alone(self, kind: str, name: str, device: str) -> bytes | None:
        return next((data for _, data in self._read_one_by_one(kind, name, (device,))), None)

    def _without_hanging(self, kind: str, devices: list[str], skip: bytearray) -> list[int]:
        """Skip the devices with a hanging read. Returns their positions."""
        hanging = self._parameters.hanging.devices(kind)
        found = [at for at, device in enumerate(devices) if device in hanging and not skip[at]] if hanging else []
        for at in found:
            skip[at] = 1
        return found

    def _read_many(
        self,
        kind: str,
        name: str,
        devices: list[str],
        keys: tuple[bytes, ...] | None,
        marks: array[int],
        skip: bytearray,
    ) -> Iterator[tuple[int, bytes | None, int]]:
        """Read with the C module. Yields position, text and mark of each text with another mark than before; None and 0
        if there is no text. If ``keys`` is None, yields all texts.
        """
        parameters, reads, state, many = self._parameters, self._reads, self._state, parameters_module.read_many
        assert many is not None, "the callers ask"
        if missing := parameters.missing(kind, name):
            skip = bytearray([skipped or one in missing for one, skipped in zip(devices, skip, strict=True)])
        hanging = parameters.hanging.devices(kind)
        left_to_read = zip(devices, skip, strict=True)
        candidates = (one for one, skipped in left_to_read if not skipped and one not in hanging)
        parent = parameters.parent(kind, name, candidates, state)
        if parent is None:
            yield from [(at, None, 0) for at, skipped in enumerate(skip) if not skipped]
            return
        for begin in range(0, len(devices), BATCH_DEVICES):
            end = begin + BATCH_DEVICES
            batch, left_out = devices[begin:end], skip[begin:end]
            held = self._without_hanging(kind, batch, left_out)
            state.batch = Batch(kind, (name,), batch)
            size, changed = many(parent, batch, name, keys, marks[begin:end].tobytes(), left_out, state.batch.progress)
            state.returned()
            reads.bytes_read += size
            for at, data, mark in changed:
                yield begin + at, self._alone(kind, name, batch[at]) if data is None else data, mark
            for at in held:
                yield begin + at, self._alone(kind, name, batch[at]), 0

    def numbers_of(self, kind: str, names: tuple[str, ...], devices: Iterable[str]) -> list[list[int | None]]:
        """Read some numbers of many devices. Returns for each name the numbers in the order of the devices; None where
        ``number`` returns None.
        """
        wanted = [*devices]
        if parameters_module.read_numbers is None:
            return [self._numbers_one_by_one(kind, name, wanted) for name in names]
        found: dict[str, list[int | None]] = {name: [None] * len(wanted) for name in names}
        by_parent: dict[str, list[str]] = defaultdict(list)
        hanging = self._parameters.hanging.devices(kind)
        missing = {name: of_name for name in names if (of_name := self._parameters.missing(kind, name))}
        for name in names:
            candidates: Iterable[str] = wanted
            if name in missing or hanging:
                candidates = _without(wanted, missing.get(name, ()), hanging)
            if (parent := self._parameters.parent(kind, name, candidates, self._state)) is not None:
                by_parent[parent].append(name)
        for parent, of_parent in by_parent.items():
            found |= zip(of_parent, self._read_numbers(parent, kind, tuple(of_parent), wanted), strict=True)
        for name, without in missing.items():  # found again at the same time as without the C module
            found[name] = [None if one in without else value for one, value in zip(wanted, found[name], strict=True)]
        return [found[name] for name in names]

    def _numbers_one_by_one(self, kind: str, name: str, devices: list[str]) -> list[int | None]:
        found: dict[str, int] = {}
        for device, data in self._read_one_by_one(kind, name, devices, read_line):
            value = natural(data)
            if value is None:
                self.skipped(kind, name, 1)
            else:
                found[device] = value
        return [found.get(device) for device in devices]

    def _read_numbers(
        self, parent: str, kind: str, names: tuple[str, ...], devices: list[str]
    ) -> list[list[int | None]]:
        """Read with the C module."""
        columns: list[list[int | None]] = [[] for _ in names]
        state, read = self._state, parameters_module.read_numbers
        assert read is not None, "the caller asks"
        for begin in range(0, len(devices), BATCH_DEVICES):
            batch = devices[begin : begin + BATCH_DEVICES]
            skip = bytearray(len(batch))
            hanging = self._without_hanging(kind, batch, skip)
            state.batch = Batch(kind, names, batch)
            size, numbers, others = read(parent, batch, names, skip, state.batch.progress)
            state.returned()
            self._reads.bytes_read += size
            for at, place in [*others, *[(at, place) for at in hanging for place in range(len(names))]]:
                numbers[place][at] = self.number(kind, batch[at], names[place])
            for column, values in zip(columns, numbers, strict=True):
                column.extend(values)
        return columns

    def numbers(self, kind: str, name: str, devices: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Read one number of many devices. Yields device and number, skipping devices where ``number`` returns None."""
        wanted = [*devices]
        (values,) = self.numbers_of(kind, (name,), wanted)
        return ((device, value) for device, value in zip(wanted, values, strict=True) if value is not None)

    def read_global(self, name: str) -> bytes | None:
        """Read a parameter without a device (``health_check``), or of LNet (``lnet.stats``); None as in ``read``."""
        tree = self._parameters.tree
        beside = name.removeprefix("lnet.")
        place = tree.path(name.replace(".", "/")) if beside == name else tree.lnet_path(beside)
        if place is None or self._is_hanging(name, "", name):
            return None
        self._state.one = name, "", name
        try:
            data = read_whole(place)
            self._state.returned()
        except OSError as error:
            self._state.returned()
            self._reads.error(name, errno.errorcode.get(error.errno or 0, "OSError"))
            return None
        self._reads.bytes_read += len(data or b"")
        if data == b"":
            self._reads.error(name, "empty")
        return data or None

    def number_global(self, name: str) -> int | None:
        """Read a number without a device; None as in ``number``."""
        data = self.read_global(name)
        value = None if data is None else natural(data)
        if data is not None and value is None:
            self.skipped_global(name, 1)
        return value

    def skipped_global(self, name: str, lines: int) -> None:
        """Count lines that were not understood, for a parameter without a device."""
        if lines:
            self._reads.skip(name, lines)

    def number(self, kind: str, device: str, name: str, parse: Callable[[bytes], int | None] = natural) -> int | None:
        """Read a parameter with one number; None if it is absent or has other text. Other text is counted.

        Nearly all are counts or sizes, so the default ``parse`` does not accept a negative number.
        """
        data = self.read(kind, device, name, read_line)
        if data is None:
            return None
        value = parse(data)
        if value is None:
            self.skipped(kind, name, 1)
        return value

    def skipped(self, kind: str, name: str, lines: int) -> None:
        """Count lines of a parameter that were not understood."""
        if lines:
            self._reads.skip(parameter_name(kind, name), lines)

    def implausible(self, kind: str, name: str, values: int) -> None:
        """Count values that were left out of a sum because no target can do so much."""
        if values:
            key = parameter_name(kind, name)
            self._reads.implausible[key] = self._reads.implausible.get(key, 0) + values

    def children(self, kind: str, device: str, folder: str) -> tuple[str, ...]:
        """Return the names in a folder of a device; none while a read of the device has not returned."""
        if self._is_hanging(kind, device, folder):
            return ()
        self._state.one = kind, device, folder
        names = self._parameters.tree.children(f"{kind}/{device}/{folder}")
        self._state.returned()
        return names

    def is_hanging(self, kind: str, device: str) -> bool:
        """Whether a read of the device has not returned."""
        return device in self._parameters.hanging.devices(kind)

    def list_devices(self, kind: str) -> tuple[NamedDevice, ...]:
        """List the devices of a kind; while a listing has not returned, the devices of the one before."""
        reading = listing_of(kind)
        if self._is_hanging(*reading):
            return self._parameters.known_devices(kind)
        self._state.one = reading
        found = self._parameters.devices(kind)
        self._state.returned()
        return found

    def driver_parameter(self, module: str, name: str) -> int | None:
        """A parameter of a kernel module; of a list, its first number. None without the module or a number."""
        try:
            text = read_whole(self._parameters.tree.roots.sysfs / "module" / module / "parameters" / name) or b""
            return int(text.decode("ascii").strip().split(",")[0], 0)
        except (OSError, ValueError):
            return None

    def root_text(self, path: str) -> bytes:
        """Read a file of procfs outside Lustre's directory (``mounts``); empty if it does not exist."""
        try:
            return read_whole(self._parameters.tree.roots.procfs / path) or b""
        except OSError:
            return b""


def _without(devices: list[str], missing: Container[str], hanging: Container[str]) -> Iterator[str]:
    return (one for one in devices if one not in missing and one not in hanging)


IDLE_STATE = b"\n    state: IDLE\n"
"""The line of ``import`` of a disconnected client. Any request, such as that of ``kbytesfree``, connects it again."""


class NodeSnapshot:
    """The view of the node that the collectors of one pass share. Each part is read once, at its first use."""

    def __init__(self, parameters: ParameterIndex) -> None:
        self.parameters = parameters
        self._devices: dict[str, tuple[NamedDevice, ...]] = {}
        self._mounts: Mounts | None = None
        self._membership: PoolMembership | None = None
        self._idle: frozenset[str] | None = None

    def devices(self, kind: str, reader: ParameterReader) -> tuple[NamedDevice, ...]:
        """All devices of a kind."""
        if kind not in self._devices:
            self._devices[kind] = reader.list_devices(kind)
        return self._devices[kind]

    def mounts(self, node: Node) -> Mounts:
        """Return the mount point of each client instance of this node."""
        if self._mounts is None:
            self._mounts = self.parameters.mount_names.mounts(node)
        return self._mounts

    def idle_clients(self, node: Node) -> frozenset[str]:
        """Object storage clients that Lustre disconnected because they were unused (``osc.*.idle_timeout``)."""
        if self._idle is None:
            self._idle = frozenset([client.name for client in node.clients("osc")
                                    if IDLE_STATE in (node.read("osc", client.name, "import") or b"")])
        return self._idle

    def membership(self, node: Node) -> PoolMembership:
        """The targets of each pool."""
        if self._membership is None:
            self._membership = self.parameters.pool_reader.membership(node)
        return self._membership


class Node(ParameterReader):
    """The view of one collector."""

    def __init__(self, snapshot: NodeSnapshot, reads: ReadStats, state: PassState | None = None) -> None:
        super().__init__(snapshot.parameters, reads, state)
        self.snapshot = snapshot

    @property
    def state(self) -> PassState:
        """State of the pass."""
        return self._state

    def clients(self, kind: str) -> tuple[ClientDevice, ...]:
        """Return the devices of this node's mounts, without the connections of servers to other servers.

        Returns the object of the previous pass if no mount or connection has changed.
        """
        return self.snapshot.parameters.clients(kind, self.devices(kind), self.snapshot.mounts(self))

    def mounts(self) -> list[tuple[str, bytes]]:
        """Device and label text of each mount."""
        return [
            (client.name, label_text(fs=client.device.fsname, mount=client.mount)) for client in self.clients("llite")
        ]

    def room(self, kind: str, device: str) -> Df:
        """Read the size and free space of a device. Unknown values are None."""
        return df.of_numbers(*[values[0] for values in self.numbers_of(kind, df.FILES, (device,))])

    def idle_clients(self) -> frozenset[str]:
        """Object storage clients of this node's mounts that a request would connect again."""
        return self.snapshot.idle_clients(self)

    def instances(self) -> list[tuple[str, str]]:
        """(fs, instance) of each mount of this node. Returns the object of the last pass if no device has changed."""
        return self.snapshot.parameters.instances([self.devices(kind) for kind in _KINDS_OF_MOUNTS])

    def devices_of(self, kind: str, fsname: str, instance: str) -> list[str]:
        """Names of the devices of a kind that belong to one mount."""
        return [
            name for name, device in self.devices(kind)
            if device.fsname == fsname and device.instance == instance
        ]  # fmt: skip

    def targets(self, kind: str) -> list[NamedDevice]:
        """Devices of this node's own targets (``obdfilter``, ``mdt``)."""
        return [t for t in self.devices(kind) if t.device.target and not t.device.instance]

    def labelled_targets(self, kind: str) -> list[tuple[str, bytes]]:
        """Device and label text of each of this node's own targets."""
        return [(name, label_text(fs=device.fsname, target=device.target)) for name, device in self.targets(kind)]

    def devices(self, kind: str) -> tuple[NamedDevice, ...]:
        """All devices of a kind, on clients and on servers."""
        return self.snapshot.devices(kind, self)

    def membership(self) -> PoolMembership:
        """The targets of each pool."""
        return self.snapshot.membership(self)


class Rooms:
    """Reads the size and free space of many devices, and makes values only of changed numbers."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[list[list[int | None]], list[Df]]] = {}

    def read(self, node: Node, kind: str, devices: list[str]) -> list[Df]:
        """Return the space of each device. Unknown values are None."""
        numbers = node.numbers_of(kind, df.FILES, devices)
        before = self._last.get(kind)
        if before is None or before[0] != numbers:
            rooms = [df.of_numbers(*of_device) for of_device in zip(*numbers, strict=True)]
            before = self._last[kind] = numbers, rooms
        return before[1]
