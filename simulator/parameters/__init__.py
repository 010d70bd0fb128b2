"""The parameter files of a node that is server and client at once, as Lustre 2.17 lays them out below a root.

Programs read these files like real ones. Each file is replaced as a whole, and only if it changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from simulator import releases
from simulator.parameters import clients, node, servers
from simulator.parameters.text import ClusterView

Files: TypeAlias = Callable[[ClusterView], Iterator[tuple[str, str]]]
SERVER_FILES: tuple[Files, ...] = (node.node_files, node.target_sizes, servers.server_files)
CLIENT_FILES: tuple[Files, ...] = (node.client_sizes, clients.llite_files, clients.osc_files, clients.mdc_files)


def render(cluster: ClusterView, *, clients: bool = True) -> dict[str, bytes]:
    """Render all files, and return their content by path below the root. ``clients`` includes the files of mounts."""
    with cluster.lock:
        rewrite = releases.release_of(cluster.settings.version).rewrite
        wanted = SERVER_FILES + CLIENT_FILES if clients else SERVER_FILES
        found = (rewrite(path, text) for files in wanted for path, text in files(cluster))
        return {path: text.encode() for path, text in found}


class ParameterWriter:
    """Keeps the files below one root up to date. The root should be on a file system in memory.

    Without concurrent readers (``shared`` is false), files are unlinked and written in place, because journaling file
    systems flush a file that replaces another file, but not a new file.
    """

    def __init__(self, root: Path, *, clients: bool = True, shared: bool = True) -> None:
        self.root = root
        self._clients = clients
        self._shared = shared
        self._written: dict[str, bytes] = {}

    def write(self, cluster: ClusterView) -> int:
        changed = 0
        for path, content in render(cluster, clients=self._clients).items():
            if self._written.get(path) != content:
                self._replace(f"{self.root}/{path}", content, new=path not in self._written)
                self._written[path] = content
                changed += 1
        return changed

    def _replace(self, path: str, content: bytes, *, new: bool) -> None:
        if new:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        elif not self._shared:
            with suppress(FileNotFoundError):
                os.unlink(path)
        written = f"{path}.new" if self._shared else path
        with open(written, "wb", buffering=0) as file:
            file.write(content)
        if self._shared:
            os.replace(written, path)
