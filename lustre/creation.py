"""New objects on an OST: how many objects each MDT creates there ahead (``osp.*.max_create_count``).

An MDT whose limit is 0 gives no new file an object on the OST (``opd_pre_max_create_count`` in
lustre/osp/osp_precreate.c, 2.17). Existing files stay readable and writable, and their objects are destroyed as usual.
Other values are 32 to 20,000 (``OST_MIN_PRECREATE``, ``OST_MAX_PRECREATE``). The parameter exists only on the MDS of
each MDT, and returns to its default when that is restarted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lustre.parameters import Tree, parse_device

PARAMETER = "max_create_count"
DEFAULT_COUNT = 20_000
"""``OST_MAX_PRECREATE``."""


class ObjectCreation:
    """The limits of the MDTs that this node serves: here of none."""

    def limits(self, target: str) -> Mapping[str, int]:
        """Limit of each MDT (``MDT0000``) for an OST, given by its full name. Empty on a node without MDTs."""
        return {}

    def stopped(self) -> frozenset[str]:
        """Full names of the OSTs of one file system on which an MDT of this node creates no objects: its limit is 0."""
        return frozenset()


class LocalObjectCreation(ObjectCreation):
    """The limits in the parameters of this node."""

    def __init__(self, tree: Tree, fsname: str) -> None:
        self._tree, self._fsname = tree, fsname

    def limits(self, target: str) -> Mapping[str, int]:
        return {mdt: int(limit) for _, mdt, limit in self._limits(target) if limit.isdigit()}

    def stopped(self) -> frozenset[str]:
        return frozenset(target for target, _, limit in self._limits() if limit == b"0")

    def _limits(self, only: str = "") -> Iterator[tuple[str, str, bytes]]:
        """OST, MDT and limit of all OSTs of the file system, or of one."""
        for name in self._tree.devices("osp"):
            device = parse_device(name)
            target, mdt = f"{device.fsname}-{device.target}", device.instance
            if target.startswith(f"{self._fsname}-OST") and mdt.startswith("MDT") and only in {"", target}:
                yield target, mdt, (self._tree.read(f"osp/{name}/{PARAMETER}") or b"").strip()


def set_command(target: str, count: int) -> str:
    """The command that sets the limit on an MDS.

    >>> set_command("lustre-OST0004", 0)
    'lctl set_param osp.lustre-OST0004-osc-MDT*.max_create_count=0'
    """
    return f"lctl set_param osp.{target}-osc-MDT*.{PARAMETER}={count}"
