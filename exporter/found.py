"""What this node is, found by looking: a client, an object or metadata server, a management server, a router."""

from __future__ import annotations

from dataclasses import dataclass

from exporter.node import Node, Survey
from exporter.places import Places
from exporter.tally import Tally
from lustre.parameters import read_whole

SERVERS = {"obdfilter": "object server", "mdt": "metadata server"}


@dataclass(frozen=True, slots=True)
class Found:
    """A node."""

    roles: tuple[str, ...]
    version: str
    """Lustre's release; empty when it is not loaded."""
    file_systems: tuple[str, ...]
    mounts: tuple[tuple[str, str], ...]
    """(file system, mount point), the latter empty where it is not known."""
    targets: tuple[tuple[str, str], ...]
    """(file system, target) of this node's own."""


def look(places: Places) -> Found:
    """Look at the node; nothing is asked of any server."""
    node = Node(Survey(places), Tally())
    mounts = [(client.device.fsname, client.mount) for client in node.clients("llite")]
    targets = {kind: [(t.device.fsname, t.device.target) for t in node.targets(kind)] for kind in SERVERS}
    roles = ["client"] if mounts else []
    roles += [role for kind, role in SERVERS.items() if targets[kind]]
    if node.every("mgs"):
        roles.append("management server")
    if _text(places.tree.lnet_path("routes")).startswith(b"Routing enabled"):
        roles.append("router")
    own = sorted({target for of_kind in targets.values() for target in of_kind})
    version = _text(places.tree.path("version")).decode("utf-8", "replace").strip()
    file_systems = sorted({fs for fs, _ in (*mounts, *own)})
    return Found(tuple(roles), version.removeprefix("lustre:").strip(), tuple(file_systems), tuple(mounts), tuple(own))


def _text(place: str | None) -> bytes:
    if place is None:
        return b""
    try:
        return read_whole(place) or b""
    except OSError:
        return b""
