"""What a collector sees of this node in one pass: its devices, mounts, targets and pools."""

from __future__ import annotations

from collections.abc import Collection

from exporter.mounts import Mounts
from exporter.places import Client, Places, Target
from exporter.pools import Membership
from exporter.reader import Reader
from exporter.tally import Tally
from exporter.text_format import label_text
from lustre.formats import df
from lustre.formats.df import Df


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


class Node(Reader):
    """The view of one collector."""

    def __init__(self, survey: Survey, tally: Tally) -> None:
        super().__init__(survey.places, tally)
        self.survey = survey

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
