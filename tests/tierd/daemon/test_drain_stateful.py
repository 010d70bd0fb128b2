"""A drain, whatever comes between and within its steps: kills, pauses, orders, users, targets that are not well."""

from contextlib import suppress
from functools import partial

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from lustre.layout.model import Component, Layout
from tests.tierd.interrupted import InterruptedSite
from tierd.act import drain
from tierd.config.act import DrainSettings
from tierd.daemon.answers import DrainRow, DrainsAnswer
from tierd.daemon.client import ControlError

OST, NAME = 4, "lustre-OST0004"
ORDERS = ("begin", "preview", "pause", "resume", "end")
DIRECTORIES = ("/a", "/a/empty", "/a/sub", "/b", "/c")


class Steps(InterruptedSite):
    """Files on the target, and a drain of it that is ordered, paused, resumed and ended at any time."""

    def __init__(self) -> None:
        super().__init__(2.0, drain=DrainSettings(scan_files_per_second=2.0, retry_seconds=5.0))
        drain.QUEUE_FILES, self.queue_files = 3, drain.QUEUE_FILES
        self.site.start()
        self.begun: dict[str, float] = {}
        """When files came to the target."""

    def teardown(self) -> None:
        try:
            self._to_the_end()
        finally:
            self.site.service.close()
            drain.QUEUE_FILES = self.queue_files
            self.folder.cleanup()

    # Steps

    @initialize(places=st.lists(st.sampled_from(DIRECTORIES), max_size=6))
    def make_files(self, places: list[str]) -> None:
        for directory in DIRECTORIES:
            self.site.cluster.make_directory(directory)
        for number, directory in enumerate(places):
            self.make_file(directory, number)

    def make_file(self, directory: str, number: int) -> None:
        path = f"{directory}/f{number}"
        found = self.site.cluster.make_directory(directory)
        with suppress(OSError):  # new objects are stopped there
            found.layout = Layout((Component(pool="hdd", ost_list=(OST,)),), composite=False)
            try:
                inode = self.site.cluster.make_file(path, 1 << 20)
            finally:
                found.layout = None
            self.contents[path] = inode.content
            self.begun[path] = self.site.cluster.epoch

    @rule(directory=st.sampled_from(DIRECTORIES), number=st.integers(10, 99))
    def a_user_writes(self, directory: str, number: int) -> None:
        if f"{directory}/f{number}" not in self.contents:
            self.make_file(directory, number)

    @rule(number=st.integers(0, 99))
    def a_user_opens_a_file(self, number: int) -> None:
        if self.contents and len(self.written) < 2:
            self.user_opens(number)

    @rule()
    def users_close_their_files(self) -> None:
        self.users_close_all()

    @rule(ost=st.sampled_from((2, 3, 5)), degraded=st.booleans())
    def another_target_is_degraded(self, ost: int, degraded: bool) -> None:
        self.site.cluster.osts[ost].degraded = degraded

    @rule(act=st.sampled_from(ORDERS))
    def order(self, act: str) -> None:
        request = {"request": "drain-target", "target": NAME, "act": act.replace("preview", "begin"),
                   "preview": act == "preview"}
        with suppress(ControlError, ValueError):
            self.site.service.answer(request)

    @rule(dry_run=st.booleans())
    def reload(self, dry_run: bool) -> None:
        self.site.restart(act={"dry_run": dry_run})

    @rule(count=st.integers(1, 4))
    def tick(self, count: int) -> None:
        for _ in range(count):
            before = self.row
            self.kills.run(until=self.site.cluster.now + 5)
            self.check(before)

    @rule(calls=st.integers(1, 40), what=st.sampled_from(("kill", "kill", *ORDERS)))
    def something_happens_meanwhile(self, calls: int, what: str) -> None:
        self.tick_with(self.kills.kill if what == "kill" else partial(self.order, what), calls)

    # What holds

    @property
    def row(self) -> DrainRow | None:
        found = DrainsAnswer.from_json(self.site.service.answer({"request": "drains"})).drains
        return found[0] if found else None

    def on_target(self) -> set[str]:
        return {inode.path for inode in self.site.cluster.namespace.files() if inode.layout and any(
            each.ost_index == OST for part in inode.layout.components for each in part.objects)}

    def check(self, before: DrainRow | None) -> None:
        row = self.row
        files = {inode.path: inode for inode in self.site.cluster.namespace.files()}
        assert {path: inode.content for path, inode in files.items()} == self.contents
        assert not self.site.sql("SELECT fid FROM actions WHERE outcome = 'done' GROUP BY fid HAVING count(*) > 1")
        if row is not None and row.phase == "empty" and (before is None or before.phase != "empty"):
            drains = self.site.service.daemon.drains.all
            assert {path for path in self.on_target() if self.begun[path] < drains[0].pass_begun_at} == set()

    def _to_the_end(self) -> None:
        self.users_close_their_files()
        for ost in self.site.cluster.osts:
            ost.degraded = False
        self.reload(dry_run=False)
        self.hold("resume")
        for act in ("resume", "begin"):
            self.order(act)
        for _ in range(100):
            self.tick(1)
            row = self.row
            if row.phase == "incomplete":
                self.order("resume")
            elif row.phase in {"previewed", "ended"}:
                self.order("begin")
            elif row.phase == "empty":
                break
        assert row.phase == "empty", row
        assert self.on_target() == set()


TestSteps = Steps.TestCase
TestSteps.settings = settings(max_examples=20, stateful_step_count=20, deadline=None,
                              suppress_health_check=[HealthCheck.too_slow])
