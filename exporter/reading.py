"""Reads the parameters of this node's devices.

:class:`ParameterIndex` remembers the folder of each parameter between scrapes; no file is kept open. A parameter that
cannot be read or parsed is counted (:class:`ReadStats`) and left out.
"""

from __future__ import annotations

import errno
import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar

from exporter.hanging import HANGING, Batch, HangingReads, PassState, Reading
from lustre import parameters as parameters_module
from lustre.formats import df
from lustre.formats.compiled import following, mark_below_times
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
        self.errors[parameter, name] = self.errors.get((parameter, name), 0) + 1

    def skip(self, parameter: str, lines: int) -> None:
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


def reading_name(reading: Reading) -> str:
    kind, device, name = reading
    return parameter_name(kind, name) if device else name


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
        self._found: dict[str, dict[str, dict[str, str]]] = {}
        """The folder of each parameter, by kind, name and device; whole paths would be megabytes."""
        self._listings: dict[str, tuple[tuple[str, ...], tuple[NamedDevice, ...]]] = {}
        self._missing: dict[str, dict[str, set[str]]] = {}
        """Devices that do not have a parameter, by kind and name."""
        self._passes_left: dict[str, int] = {}

    def devices(self, kind: str) -> tuple[NamedDevice, ...]:
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

    def folders(self, kind: str, name: str) -> dict[str, str]:
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
        """Return the directory of the kind in which a device has the parameter; None if no device has it."""
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


class Parsed(Protocol):
    """A parsed text."""

    @property
    def skipped(self) -> int:
        """Number of lines that were not understood."""


T = TypeVar("T")
P = TypeVar("P", bound=Parsed)


class ParameterReader:
    """Reads parameters for one collector, and counts the reads in ``ReadStats``."""

    def __init__(
        self,
        parameters: ParameterIndex,
        reads: ReadStats,
        listed: dict[str, tuple[NamedDevice, ...]],
        state: PassState | None = None,
    ) -> None:
        """``listed`` has the devices of each kind in this scrape, which all collectors share."""
        self._parameters = parameters
        self._reads = reads
        self._listed = listed
        self.state = state or PassState(parameters.hanging)

    def _is_hanging(self, reading: Reading) -> bool:
        """Whether an earlier read of this device has not returned, so that it is not read. This is counted."""
        hanging = self.is_hanging(reading[0], reading[1])
        if hanging:
            self._reads.error(reading_name(reading), HANGING)
        return hanging

    def _attempt(self, reading: Reading, read: Callable[[], T]) -> T | None:
        """Return the result of a read, during which the pass may be abandoned. An error is counted and becomes None."""
        self.state.one = reading
        try:
            found = read()
        except OSError as error:
            self.state.returned()  # first: if the pass was abandoned, it counts no errors
            self._reads.error(reading_name(reading), errno.errorcode.get(error.errno or 0, "OSError"))
            return None
        self.state.returned()
        return found

    def devices(self, kind: str) -> tuple[NamedDevice, ...]:
        """All devices of a kind, on clients and on servers; those of the last listing while one has not returned."""
        if kind not in self._listed:
            listing = f"{kind}/", "", parameter_name(kind, "").rstrip(".")
            if self._is_hanging(listing):
                self._listed[kind] = self._parameters.known_devices(kind)
            else:
                self.state.one = listing
                self._listed[kind] = self._parameters.devices(kind)
                self.state.returned()
        return self._listed[kind]

    def read(
        self, kind: str, device: str, name: str, read: ReadParameter = read_whole, *, may_be_empty: bool = False
    ) -> bytes | None:
        """Read a parameter; None if it is absent, empty or unreadable. Empty and unreadable parameters are counted."""
        reading = kind, device, name
        if self._is_hanging(reading):
            return None
        data = self._attempt(reading, lambda: self._parameters.read(kind, device, name, read))
        return data if may_be_empty else self._not_empty(reading, data)

    def parsed(
        self, kind: str, device: str, name: str, parse: Callable[[bytes], P], *, may_be_empty: bool = False
    ) -> P | None:
        """Read and parse a parameter; None as in ``read``. Lines that were not understood are counted."""
        data = self.read(kind, device, name, may_be_empty=may_be_empty)
        found = None if data is None else parse(data)
        if found is not None:
            self.skipped(kind, name, found.skipped)
        return found

    def _not_empty(self, reading: Reading, data: bytes | None) -> bytes | None:
        self._reads.bytes_read += len(data or b"")
        if data == b"":
            self._reads.error(reading_name(reading), "empty")
        return data or None

    def read_through(self, kind: str, device: str, name: str, take: Callable[[bytes], None]) -> bool:
        """Pass a parameter to ``take`` in pieces; False if it is absent or unreadable. Unreadable ones are counted.
        ``take`` may raise OSError for an invalid text.
        """
        reading = kind, device, name
        if self._is_hanging(reading):
            return False
        pieces = 0
        state = self.state

        def count(piece: bytes) -> None:
            nonlocal pieces
            state.returned()
            pieces += 1
            self._reads.bytes_read += len(piece)
            take(piece)
            state.one = kind, device, name  # each piece is a read of its own

        def read() -> bool:
            folder = self._parameters.folders(kind, name).get(device)
            # what was passed on in part is not passed on again
            if folder is not None and ((whole := read_through(folder + name, count)) or pieces):
                return whole
            data = self._parameters.locate(kind, device, name)
            if data is not None:
                count(data)
            return data is not None

        return self._attempt(reading, read) or False

    def _read_each(self, kind: str, name: str, devices: list[str]) -> Iterator[tuple[str, bytes]]:
        if parameters_module.read_many is not None:
            for at, data, _ in self._read_many(kind, name, devices, None, array("Q"), bytearray(len(devices))):
                if data is not None:
                    yield devices[at], data
            return
        for device in devices:
            if (data := self.read(kind, device, name)) is not None:
                yield device, data

    def changed(self, texts: Texts, quiet: Container[str] = ()) -> Iterator[tuple[int, bytes | None]]:
        """Read one parameter of many devices. Yields position and text of each device whose text has changed since the
        last pass, and position and None of each device whose text can no longer be read.

        A text counts as known when the next one is asked for, so a text that could not be processed is yielded again.
        Devices in ``quiet`` whose text is known are not read.
        """
        marks, present = texts.marks, texts.present
        for position, data, mark in self._unknown(texts, quiet):
            if data is not None or present[position]:
                marks[position] = 0  # unknown until it is processed
                yield position, data
                marks[position], present[position] = mark, data is not None

    def _unknown(self, texts: Texts, quiet: Container[str]) -> Iterator[tuple[int, bytes | None, int]]:
        """Yield position, text and mark of each text whose mark has changed; None and 0 if there is no text."""
        kind, name, devices, marks, part = texts.kind, texts.name, texts.devices, texts.marks, texts.part
        skip = bytearray(len(devices))
        if quiet:
            skip = bytearray([mark != 0 and device in quiet for device, mark in zip(devices, marks, strict=True)])
        if parameters_module.read_many is not None and not callable(part):
            yield from self._read_many(kind, name, devices, part, marks, skip)
            return
        left = {device: at for at, (device, skipped) in enumerate(zip(devices, skip, strict=True)) if not skipped}
        for device, data in self._read_each(kind, name, [*left]):
            position, mark = left.pop(device), texts.mark_of(data)
            if mark != marks[position]:
                yield position, data, mark
        for position in left.values():
            yield position, None, 0

    def _without_hanging(self, kind: str, devices: list[str], skip: bytearray) -> list[int]:
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
        parameters, reads, state, many = self._parameters, self._reads, self.state, parameters_module.read_many
        assert many is not None, "the callers ask"
        if missing := parameters.missing(kind, name):
            gone = [at for at, one in enumerate(devices) if one in missing and not skip[at]]
            for at in gone:  # another collector may have found it missing first, so it may have had a text until now
                skip[at] = 1
            yield from [(at, None, 0) for at in gone]
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
            # asked again for each batch: a read may have begun to hang
            held = self._without_hanging(kind, batch, left_out)
            state.batch = Batch(kind, (name,), batch)
            size, changed = many(parent, batch, name, keys, marks[begin:end].tobytes(), left_out, state.batch.progress)
            state.returned()
            reads.bytes_read += size
            for at, data, mark in changed:
                yield begin + at, self.read(kind, batch[at], name) if data is None else data, mark
            for at in held:  # read() counts them as hanging
                yield begin + at, self.read(kind, batch[at], name), 0

    def numbers_of(self, kind: str, names: tuple[str, ...], devices: Iterable[str]) -> list[list[int | None]]:
        """Read some numbers of many devices. Returns for each name the numbers in the order of the devices; None where
        ``number`` returns None.
        """
        wanted = [*devices]
        if parameters_module.read_numbers is None:
            return [[self.number(kind, device, name) for device in wanted] for name in names]
        found: dict[str, list[int | None]] = {name: [None] * len(wanted) for name in names}
        by_parent: dict[str, list[str]] = defaultdict(list)
        hanging = self._parameters.hanging.devices(kind)
        missing = {name: of_name for name in names if (of_name := self._parameters.missing(kind, name))}
        for name in names:
            candidates: Iterable[str] = wanted
            if name in missing or hanging:
                candidates = _without(wanted, missing.get(name, ()), hanging)
            if (parent := self._parameters.parent(kind, name, candidates, self.state)) is not None:
                by_parent[parent].append(name)
        for parent, of_parent in by_parent.items():
            found |= zip(of_parent, self._read_numbers(parent, kind, tuple(of_parent), wanted), strict=True)
        for name, without in missing.items():  # found again at the same time as without the C module
            found[name] = [None if one in without else value for one, value in zip(wanted, found[name], strict=True)]
        return [found[name] for name in names]

    def _read_numbers(
        self, parent: str, kind: str, names: tuple[str, ...], devices: list[str]
    ) -> list[list[int | None]]:
        columns: list[list[int | None]] = [[] for _ in names]
        state, read = self.state, parameters_module.read_numbers
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

    def read_global(self, name: str) -> bytes | None:
        """Read a parameter without a device (``health_check``), or of LNet (``lnet.stats``); None as in ``read``."""
        tree = self._parameters.tree
        name_in_lnet = name.removeprefix("lnet.")
        place = tree.path(name.replace(".", "/")) if name_in_lnet == name else tree.lnet_path(name_in_lnet)
        reading = name, "", name
        if place is None or self._is_hanging(reading):
            return None
        return self._not_empty(reading, self._attempt(reading, lambda: read_whole(place)))

    def parsed_global(self, name: str, parse: Callable[[bytes], P]) -> P | None:
        """Read and parse a parameter without a device; None as in ``read``."""
        data = self.read_global(name)
        found = None if data is None else parse(data)
        if found is not None:
            self.skipped_global(name, found.skipped)
        return found

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
        """Read a parameter with one number; None if it is absent or has other text. Other text is counted. Nearly all
        are counts or sizes, so the default ``parse`` does not accept a negative number.
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
        reading = kind, device, folder
        if self._is_hanging(reading):
            return ()
        self.state.one = reading
        names = self._parameters.tree.children(f"{kind}/{device}/{folder}")
        self.state.returned()
        return names

    def is_hanging(self, kind: str, device: str) -> bool:
        return device in self._parameters.hanging.devices(kind)

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
