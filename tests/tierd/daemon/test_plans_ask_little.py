"""A cycle may make hundreds of plans: what they ask the file system does not grow with that."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from tests.tierd.simulated import world
from tests.tierd.worlds import noise
from tierd.daemon.planning import Planner
from tierd.model import Candidate, DirectoryActivity, Finding


@dataclass
class Asked:
    """A file system that counts the calls."""

    filesystem: Filesystem
    calls: Counter[str] = field(default_factory=Counter)

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self.filesystem, name)


def test_plans_of_one_second_read_free_space_once_and_no_files_of_removed_directories(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=())
    at.cluster.make_directory("/there")
    asked = Asked(at.filesystem)
    parts = at.daemon.parts
    planner = Planner(replace(parts, node=replace(parts.node, filesystem=cast(Filesystem, asked))), at.daemon.engine,
                      at.daemon.table, lambda: ())
    for place in ("/there", "/removed"):
        file = Candidate(Fid(0x200000403, 1), f"{place}/f", 10.0, 10.0)
        found = Finding("noisy-neighbour", 0.0, "small.2", "stream.1", (), "it is slow", noise(), (place,))
        planner.for_activities(found, [DirectoryActivity("small.2", place, candidates=(file,))])
    assert (asked.calls["pools"], asked.calls["space"], asked.calls["status"]) == (1, 1, 1)
    layouts = asked.calls["layout"]
    planner.for_activities(replace(found, victim="stream.2"), [])
    assert asked.calls["layout"] == layouts, "each victim of a neighbour asked for the same layouts"
    planner.forget()
    planner.for_activities(found, [])
    assert asked.calls["layout"] > layouts, "a later pass uses old layouts"
    assert asked.calls["space"] == 2
    at.cluster.advance(2.0)
    planner.for_activities(found, [])
    assert asked.calls["space"] == 3
