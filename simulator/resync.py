"""``lfs mirror resync``: copies of a file that a write has made stale are brought up to date.

Every stale copy is written anew from one that is true, through the same queues as everybody; its components get their
objects first where they have none. Whoever opens the file for writing meanwhile wins, as with a migration.
"""

from __future__ import annotations

from dataclasses import replace

from lustre.changelog.record import RecordType
from lustre.layout.model import Component, Layout
from simulator import mirrors
from simulator.changelog import Actor
from simulator.client import Client
from simulator.engine import Completion, Steps
from simulator.handle import FileHandle
from simulator.migration import LEASE_FLAGS, copied, leased, refuse
from simulator.namespace import Inode


class Resync:
    """One resync under way, or over: ``finished`` holds the error if there was one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.copied_bytes = 0
        self.finished = Completion()

    def steps(self, client: Client, actor: Actor, start_seconds: float) -> Steps[None]:
        """All stale copies, one after the other. Raises OSError as Lustre would."""
        yield client.jitter(start_seconds)
        inode = client.servers.namespace.lookup(self.path)
        refuse(inode)
        inode.migrating, inode.lease_broken = True, False
        try:
            yield from leased(client, inode, actor)
            for parts in _stale(inode.layout):
                yield from self._copy(client, actor, inode, parts)
            yield from client.mdcs[inode.mdt_index].ask("layout", actor.job_id)
            refuse(inode)
            if inode.layout is not None and inode.layout.mirror_count > 1:
                inode.layout = mirrors.resynced(inode.layout)
            client.record(RecordType.RESYNC, inode, actor)
        finally:
            inode.migrating = False
            yield from client.mdcs[inode.mdt_index].ask("close", actor.job_id)
            client.record(RecordType.CLOSE, inode, actor, LEASE_FLAGS)

    def _copy(self, client: Client, actor: Actor, inode: Inode, parts: list[Component]) -> Steps[None]:
        shadow = Inode(inode.fid, inode.mdt_index, None, inode.name, client.time)
        shadow.layout = client.servers.placement.reach(Layout(tuple(parts)), max(inode.size_bytes, 1))
        assert inode.layout is not None
        new = {part.component_id: part for part in shadow.layout.components}
        whole = tuple(new.get(part.component_id, part) for part in inode.layout.components)
        inode.layout = replace(inode.layout, components=whole)
        yield from copied(client, FileHandle(inode, actor, 1, 0.0, writable=False), shadow, self._count)

    def _count(self, size_bytes: int) -> None:
        self.copied_bytes += size_bytes


def _stale(layout: Layout | None) -> list[list[Component]]:
    if layout is None or layout.mirror_count == 1:
        return []
    return [parts for parts in mirrors.copies(layout).values() if any("stale" in part.flags for part in parts)]
