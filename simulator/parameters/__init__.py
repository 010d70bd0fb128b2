"""The parameter files of a node that is servers and clients at once, as Lustre 2.17 lays them out below a root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from simulator import releases
from simulator.parameters import llite, mdc, node, osc, servers, sizes

if TYPE_CHECKING:
    from simulator.cluster import Cluster

FILES: tuple[Callable[[Cluster], Iterator[tuple[str, str]]], ...] = (
    node.files,
    sizes.files,
    llite.files,
    osc.files,
    mdc.files,
    servers.files,
)


def render(cluster: Cluster) -> dict[str, bytes]:
    """Every file's path below the root, and what is in it at this moment."""
    with cluster.lock:
        rewrite = releases.of(cluster.settings.version).rewrite
        found = (rewrite(path, text) for files in FILES for path, text in files(cluster))
        return {file[0]: file[1].encode() for file in found if file is not None}
