"""The parameter files of a node that is server and client at once, as Lustre 2.17 lays them out below a root.

Programs read these files like real ones. Each file is replaced as a whole, and only if it changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from simulator import releases
from simulator.cluster import Cluster
from simulator.parameters import clients, node, servers

Files: TypeAlias = Callable[[Cluster], Iterator[tuple[str, str]]]
SERVER_FILES: tuple[Files, ...] = (node.node_files, node.target_sizes, servers.server_files)
CLIENT_FILES: tuple[Files, ...] = (node.client_sizes, clients.llite_files, clients.osc_files, clients.mdc_files)


def render(cluster: Cluster, *, clients: bool = True) -> dict[str, bytes]:
    """Render all files, and return their content by path below the root. ``clients`` includes the files of mounts."""
    with cluster.lock:
        release = releases.number_of(cluster.settings.version)
        wanted = SERVER_FILES + CLIENT_FILES if clients else SERVER_FILES
        found = (releases.rewrite(path, text, release) for files in wanted for path, text in files(cluster))
        return {path: text.encode() for path, text in found}


def write_parameters(cluster: Cluster, root: Path, *, clients: bool = True) -> int:
    """Update the files below a root, which should be on a file system in memory; returns the number of changed files.

    While the exporter is unreachable, nothing is written.
    """
    if not cluster.exporter_reachable:
        return 0
    cluster.settle()
    written, changed = cluster.written.setdefault(root, {}), 0
    for path, content in render(cluster, clients=clients).items():
        if written.get(path) != content:
            _replace(f"{root}/{path}", content, new=path not in written)
            written[path] = content
            changed += 1
    return changed


def _replace(path: str, content: bytes, *, new: bool) -> None:
    if new:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.new", "wb", buffering=0) as file:
        file.write(content)
    os.replace(f"{path}.new", path)
