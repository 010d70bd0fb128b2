"""The settings and counters of one node that the audit compares, read once.

Parameters are read as texts by device. What a node does not have is absent: a client has no ``obdfilter``, and most
nodes have no Omni-Path driver. A file that exists and cannot be read is listed in :attr:`Node.unreadable`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lustre.formats import version
from lustre.parameters import Roots, Tree, read_whole
from tierd.advised import DRIVER_SETTINGS, FABRIC_DRIVER

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "osc": ("max_pages_per_rpc", "max_rpcs_in_flight", "rpc_stats", "import"),
    "llite": ("max_read_ahead_mb", "read_ahead_stats", "statahead_max", "statahead_batch_max", "statahead_stats"),
    "obdfilter": ("brw_size",),
    "osd-ldiskfs": ("brw_stats",),
    "osd-zfs": ("brw_stats",),
}
"""Parameters by kind of device."""
_MEMORY = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Node:
    """One node. Texts have no spaces at either end."""

    loaded: bool = False
    """Whether Lustre's modules are loaded."""
    release: str = ""
    """Release of Lustre; "" if unknown."""
    kernel: str = ""
    server: bool = False
    """Whether it has targets."""
    memory_bytes: int = 0
    """0 if unknown."""
    page_bytes: int = 4096
    jobid_var: str = ""
    parameters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By name (``osc.max_pages_per_rpc``), the text by device."""
    driver: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the Omni-Path driver; empty without one."""
    unreadable: tuple[str, ...] = ()
    """Directories or files that this process may not read."""

    def texts(self, name: str) -> Mapping[str, str]:
        """The texts of a parameter by device. Empty if the node or the release has none."""
        return self.parameters.get(name, {})

    def numbers(self, name: str) -> dict[str, int]:
        """The values of a parameter by device. A text that is not a number is left out.

        >>> Node(parameters={"llite.max_read_ahead_mb": {"a": "256", "b": "256.5", "c": "-"}}).numbers(
        ...     "llite.max_read_ahead_mb")
        {'a': 256, 'b': 256}
        """
        found = {device: re.match(r"(\d{1,15})(?:\.\d+)?(?!\S)", text) for device, text in self.texts(name).items()}
        return {device: int(match[1]) for device, match in found.items() if match}

    @property
    def version(self) -> tuple[int, ...]:
        """The release as numbers, so that releases can be compared; empty if unknown.

        >>> Node(release="2.17.57_62_gc881f8e_dirty").version, Node(release="2.15.0-RC3").version, Node().version
        ((2, 17, 57), (2, 15, 0), ())
        """
        return numbers_of(self.release)


def numbers_of(release: str) -> tuple[int, ...]:
    """The numbers at the beginning of a release.

    >>> numbers_of("3.10.0-957.1.3.el7.x86_64"), numbers_of("unknown")
    ((3, 10, 0), ())
    """
    match = re.match(r"\d+(?:\.\d+)*", release)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def read_node(roots: Roots) -> Node:
    """Read one node. Raises no error: what cannot be read is absent or listed as unreadable."""
    tree = Tree(roots)
    unreadable = sorted(tree.closed().values())
    parameters: dict[str, dict[str, str]] = {}
    for kind, names in SETTINGS.items():
        for device in tree.devices(kind):
            if kind == "osc" and "-osc-MDT" in device:
                continue  # the connections of an MDT, which a client's settings do not concern
            for name in names:
                text = _text(tree.path(f"{kind}/{device}/{name}"), unreadable)
                if text is not None:
                    parameters.setdefault(f"{kind}.{name}", {})[device] = text
    folder = os.path.join(roots.sysfs, "module", FABRIC_DRIVER, "parameters")
    driver = {name: text for name in DRIVER_SETTINGS
              if (text := _text(os.path.join(folder, name), unreadable)) is not None}
    printed = tree.read("version")
    release = version.parse(printed).release if printed is not None else None
    memory = _MEMORY.search(_text(os.path.join(roots.procfs, "meminfo"), unreadable) or "")
    return Node(tree.loaded(), release.decode() if release else "",
                kernel=_text(os.path.join(roots.procfs, "sys", "kernel", "osrelease"), unreadable) or "",
                server=bool(tree.devices("obdfilter") or tree.devices("mdt")),
                memory_bytes=int(memory[1]) << 10 if memory else 0,
                page_bytes=os.sysconf("SC_PAGE_SIZE"), jobid_var=_text(tree.path("jobid_var"), unreadable) or "",
                parameters=parameters, driver=driver,
                unreadable=tuple(unreadable))


def _text(path: str | None, unreadable: list[str]) -> str | None:
    if path is None:
        return None
    try:
        data = read_whole(path)
    except OSError:
        unreadable.append(path)
        return None
    return None if data is None else data.decode("utf-8", "backslashreplace").strip()
