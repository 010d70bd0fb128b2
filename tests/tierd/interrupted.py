"""A simulated file system between whose calls something happens, and a site that is killed there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lustre.layout.model import Layout
from simulator.cluster import Cluster
from tests.tierd.act.movers.minicalls import Killed
from tests.tierd.site import Clearing, Site, altered

CALLS = ("status", "layout", "entries", "subdirectories", "space", "pools", "xattr")


class Interrupted(Clearing):
    """Something happens just before one of the next calls, or just after one of the next moves."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.calls_left, self.happens = -1, lambda: None
        for name in CALLS:
            setattr(self, name, self._counted(getattr(self, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self._count()
            return call(*arguments)
        return counted

    def _count(self) -> None:
        self.calls_left -= 1
        if self.calls_left == 0:
            self.happens()

    def migrate(self, path: str, layout: Layout) -> None:
        super().migrate(path, layout)
        self._count()


class Kills:
    """Kills a site at some call, and starts it again with the journal as it was then."""

    def __init__(self, site: Site, filesystem: Interrupted) -> None:
        self.site, self.filesystem, self.count = site, filesystem, 0

    @property
    def _journal(self) -> Path:
        return self.site.folder / f"killed{self.count}"

    def kill(self) -> None:
        shutil.copytree(Path(self.site.settings.act.journal).parent, self._journal)
        raise Killed

    def run(self, until: float) -> None:
        try:
            self.site.run(until)
        except Killed:
            self.filesystem.calls_left = -1
            self.site.service.close()
            self.site.settings = altered(self.site.settings, act={"journal": str(self._journal / "journal.sqlite")})
            self.count += 1
            self.site.start()
