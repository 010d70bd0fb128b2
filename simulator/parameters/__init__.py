"""The parameter files of a node that is servers and clients at once, as Lustre 2.17 lays them out below a root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from simulator import releases
from simulator.parameters import llite, mdc, node, osc, servers, sizes

if TYPE_CHECKING:
    from simulator.cluster import Cluster

Files: TypeAlias = Callable[["Cluster"], Iterator[tuple[str, str]]]
SERVER_FILES: tuple[Files, ...] = (node.files, sizes.of_targets, servers.files)
CLIENT_FILES: tuple[Files, ...] = (sizes.of_clients, llite.files, osc.files, mdc.files)


def render(cluster: Cluster, *, clients: bool = True) -> dict[str, bytes]:
    """Every file's path below the root, and what is in it at this moment; ``clients``: what mounts show as well."""
    with cluster.lock:
        rewrite = releases.of(cluster.settings.version).rewrite
        wanted = SERVER_FILES + CLIENT_FILES if clients else SERVER_FILES
        found = (rewrite(path, text) for files in wanted for path, text in files(cluster))
        return {path: text.encode() for path, text in found}
