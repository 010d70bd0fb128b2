"""What the further detectors need, from a recording."""

from __future__ import annotations

from lustre.parameters import Tree
from tierd.facts import Facts, TargetFill
from tierd.sense import clients, local
from tierd.sense.changelogs import ActivityTable
from tierd.sense.client_counters import ClientCounters, difference
from tierd.sense.facts import LEAST_OPENERS
from tierd.sense.growth import Growth
from tierd.sense.recent import RecentDirectories
from tierd.sense.tape import Tape


class TapeFacts:
    """What the further detectors need, from the tape: clients, room, recent directories and their layouts."""

    def __init__(self, tape: Tape, table: ActivityTable) -> None:
        self._tape = tape
        self._table = table
        self._recent = RecentDirectories()
        self._growth = Growth()
        self._before: dict[str, tuple[float, ClientCounters]] = {}

    def __call__(self, tree: Tree, time: float) -> Facts:
        """The facts of one snapshot."""
        directories, seconds = self._recent.since_then(self._table.summaries(0.0), time)
        room = local.room(tree)
        pool_of = {target: pool for pool, targets in room.pools.items() for target in targets}
        loads = []
        for counters in clients.counters(tree, pool_of):
            earlier = self._before.get(counters.mount)
            if earlier is not None:
                loads.append(difference(earlier[1], counters, time, time - earlier[0]))
            self._before[counters.mount] = time, counters
        spaces = ((target, local.space_of(tree, f"obdfilter/{target}")) for target in tree.devices("obdfilter"))
        return Facts(
            clients=tuple(load for load in loads if load is not None), pools=room.pools,
            fill=self._growth.measured({t: TargetFill(s.size_bytes, s.avail_bytes) for t, s in spaces
                                        if s.size_bytes and s.avail_bytes}, time),
            directories=directories, directory_seconds=seconds, metadata_targets=len(tree.devices("mdt")),
            default_layouts=self._tape.layouts_of(d.directory for d in directories),
            shared_files=tuple(self._table.shared_files(LEAST_OPENERS)),
        )
