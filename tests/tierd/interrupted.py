"""A simulated file system between whose calls something happens, and a site that is killed there."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from lustre.layout.model import Layout
from simulator.cluster import Cluster
from simulator.servers.namespace import Inode
from simulator.settings import recorded_test_bed
from tests.tierd.act.movers.minicalls import Killed
from tests.tierd.site import Clearing, Site, acting, altered
from tierd.config.act import Rate

FAST = Rate(1000.0, 1e12)
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


class InterruptedSite(RuleBasedStateMachine):
    """A site with files, their users, and steps in the middle of which something happens."""

    def __init__(self, files_per_second: float, **settings: Any) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        folder, cluster = Path(self.folder.name), Cluster(recorded_test_bed())
        limits = {"files_per_second": files_per_second, "bytes_per_second": 1e9, "per_pool": FAST, "per_target": FAST}
        self.filesystem = Interrupted(cluster)
        self.site = Site(cluster, self.filesystem, acting(folder, limits=limits, **settings), folder)
        self.kills = Kills(self.site, self.filesystem)
        self.contents: dict[str, int] = {}
        """Of all files, by path."""
        self.written: list[Inode] = []

    def tick(self, count: int) -> None:
        """Some cycles, and what must hold after each."""
        raise NotImplementedError

    def tick_with(self, happens: Callable[[], None], calls: int) -> None:
        """Some cycles, and something after so many calls of the file system in them."""
        self.filesystem.calls_left, self.filesystem.happens = calls, happens
        self.tick(2)
        self.filesystem.calls_left = -1

    def users_close_all(self) -> None:
        while self.written:
            self.written.pop().writers -= 1

    def user_opens(self, number: int) -> None:
        inode = self.site.cluster.namespace.lookup(sorted(self.contents)[number % len(self.contents)])
        inode.writers += 1
        self.written.append(inode)

    @rule(number=st.integers(0, 99))
    def a_user_removes_a_file(self, number: int) -> None:
        if self.contents:
            path = sorted(self.contents)[number % len(self.contents)]
            inode = self.site.cluster.namespace.lookup(path)
            if not inode.migrating and not inode.writers:
                self.site.cluster.namespace.remove(inode, self.site.cluster.now)
                del self.contents[path]

    @rule(request=st.sampled_from(("pause", "drain", "resume")))
    def hold(self, request: str) -> None:
        self.site.service.answer({"request": request})
