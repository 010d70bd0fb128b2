"""``tierd --check-config --online``: compares the settings with this node, its file system and the servers they name.

Reads only. Each part of this node that it asks is a field of :class:`Node`, so tests pass their own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lustre import mounts
from lustre.errors import Unsupported
from lustre.filesystem import Filesystem
from lustre.llapi.calls import Library
from lustre.mounted import MountedFilesystem, mdts_of
from lustre.parameters import Roots, Tree
from tierd.act.guard import NO_USER_XATTR, OPT_OUT
from tierd.config.contradictions import Contradiction, Location, pools_by_location
from tierd.config.sense import ServerAccess
from tierd.config.settings import Settings
from tierd.policies.registry import policy_of
from tierd.sense.exposition import TEXT_TYPES
from tierd.sense.http_client import HttpClient

REQUESTS_AT_ONCE = 16


@dataclass(frozen=True)
class Node:
    """What is asked on this node. Each function raises OSError if there is no answer."""

    filesystem: Callable[[], Filesystem]
    mdts: Callable[[], Sequence[str]]
    exists: Callable[[str], bool]
    """Whether there is something at a path of this node."""
    fetch: Callable[[str, ServerAccess, Sequence[str]], bytes]
    """The answer to a URL with credentials, of one of several content types."""
    program: Callable[[str], str | None] = shutil.which
    library: Callable[[str], object] = Library.load


def this_node(settings: Settings) -> Node:
    tree = Tree(Roots.of("/proc", "/sys"))

    def mount() -> mounts.Mount:
        return mounts.find(settings.filesystem.mount, Path("/proc/mounts").read_bytes())

    def mounted() -> MountedFilesystem:
        return MountedFilesystem(mount(), Library.load(settings.movers.library), tree)

    def fetch(url: str, access: ServerAccess, kinds: Sequence[str]) -> bytes:
        client = HttpClient(access, settings.sense.timeout_seconds, os.environ)
        return client.send("GET", url, kinds).body

    return Node(mounted, lambda: mdts_of(tree, mount().fsname), os.path.lexists, fetch)


def online_contradictions(settings: Settings, values: Mapping[str, object], node: Node) -> Iterator[Contradiction]:
    """All differences between the settings and what the node finds. A server that does not answer is a warning."""
    try:
        filesystem = node.filesystem()
        pools = filesystem.pools()
    except OSError as error:
        mount = settings.filesystem.mount
        yield Contradiction(("filesystem", "mount"), f"no Lustre file system at {mount}: {error.strerror or error}")
    else:
        yield from pool_contradictions(settings, values, filesystem.fsname, pools)
        yield from site_contradictions(settings, node, filesystem)
    if settings.movers.engine == "lfs" and node.program(settings.movers.lfs) is None:
        yield Contradiction(("movers", "lfs"), f"no program {settings.movers.lfs!r}: install the Lustre client's tools")
    try:
        node.library(settings.movers.library)
    except OSError as error:
        yield Contradiction(("movers", "library"), f"{error.strerror or error}")
    yield from silent_servers(settings, node)


def pool_contradictions(settings: Settings, values: Mapping[str, object], fsname: str,
                        pools: Mapping[str, Sequence[str]]) -> Iterator[Contradiction]:
    """Pools that the file system lacks, and pools without targets."""
    known = ", ".join(sorted(pools)) or "none"
    for location, name in pools_by_location(settings, values).items():
        if not pools.get(name):
            is_for_flash = location[-1] == "flash_pool"
            yield Contradiction(location, f"pool {name!r} of {fsname} has no targets: lctl pool_add" if name in pools
                                else f"{fsname} has no pool {name!r}; its pools: {known}",
                                fatal=not (is_for_flash and any(policy_of(kind).place for kind in settings.act.on)))


def site_contradictions(settings: Settings, node: Node, filesystem: Filesystem) -> Iterator[Contradiction]:
    """MDTs that this client does not know, unreadable opt-outs of users, and scopes of paths that are not there.

    Paths of scopes may be made later, so these are warnings; opt-outs are one where the settings allow acts without.
    """
    named: list[tuple[Location, str]] = [(("sense", "mdts", number), mdt)
                                         for number, mdt in enumerate(settings.sense.mdts)]
    named += [(("sense", "readers", mdt), mdt) for mdt in settings.sense.readers]
    with contextlib.suppress(OSError):
        known = node.mdts() if named else ()
        for location, mdt in named:
            if mdt not in known:
                yield Contradiction(location, f"this client is not connected to {mdt}; its metadata targets: "
                                    f"{', '.join(known) or 'none'}")
    try:
        filesystem.xattr("/", OPT_OUT)
    except Unsupported:
        yield Contradiction(("filesystem", "mount"), NO_USER_XATTR, fatal=not settings.act.without_user_xattr)
    except OSError:
        pass  # the file system has gone meanwhile
    mount = settings.filesystem.mount.rstrip("/")
    for number, scope in enumerate(settings.scopes):
        if not node.exists(f"{mount}{scope.path}"):
            yield Contradiction(("scopes", number, "path"), f"there is no {mount}{scope.path} now, so this scope "
                                "applies to nothing", fatal=False)


def silent_servers(settings: Settings, node: Node) -> Iterator[Contradiction]:
    """Exporters and Prometheus that do not answer, or whose passwords and certificates cannot be read."""
    sense = settings.sense

    def ask(location: Location, url: str, access: ServerAccess, kinds: Sequence[str] = TEXT_TYPES
            ) -> Contradiction | None:
        try:
            node.fetch(url, access, kinds)
        except OSError as error:
            return Contradiction(location, f"no answer: {error}", fatal=False)
        return None

    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        asked = [pool.submit(ask, ("sense", key, number), url, sense.exporter_access)
                 for key in ("exporters", "clients") for number, url in enumerate(getattr(sense, key))]
        if sense.prometheus.url:
            url = f"{sense.prometheus.url.rstrip('/')}/api/v1/query?query=up"
            asked.append(pool.submit(ask, ("sense", "prometheus", "url"), url, sense.prometheus.access,
                                     ("application/json",)))
        yield from filter(None, [each.result() for each in asked])
