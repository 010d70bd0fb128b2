"""Stagings of jobs, whatever comes between and within their steps: kills, pauses, cancels, deadlines, users."""

from contextlib import suppress
from functools import partial

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from lustre.layout.model import Component, Layout
from tests.tierd.interrupted import InterruptedSite
from tierd.daemon.answers import StagingAnswer, StagingsAnswer
from tierd.daemon.client import ControlError

HDD = Layout((Component(pool="hdd"),), composite=False)
PATHS = ("/p", "/p/a", "/p/b", "/p/a/f0")
JOBS = ("1", "2", "3")


class Steps(InterruptedSite):
    """Trees that several jobs stage in and out."""

    def __init__(self) -> None:
        super().__init__(files_per_second=0.5)
        self.site.start()
        self.came: dict[str, float] = {}
        self.ended: set[int] = set()
        self.last: dict[str, float] = {}
        """When files were last staged in each direction."""

    def teardown(self) -> None:
        try:
            self.hold("resume")
            for _ in range(30):
                self.tick(1)
            assert not [each for each in self.stagings if each.open]
        finally:
            self.site.service.close()
            self.folder.cleanup()

    @initialize(places=st.lists(st.sampled_from(("/p/a", "/p/b")), min_size=1, max_size=6))
    def make_files(self, places: list[str]) -> None:
        self.site.cluster.make_directory("/p").layout = HDD
        for place in ("/p/a", "/p/b"):
            self.site.cluster.make_directory(place)
        for number, place in enumerate(places):
            self.a_user_writes(place, number)

    @rule(place=st.sampled_from(("/p/a", "/p/b")), number=st.integers(0, 9))
    def a_user_writes(self, place: str, number: int) -> None:
        path = f"{place}/f{number}"
        if path not in self.contents:
            self.contents[path] = self.site.cluster.make_file(path, 1 << 20, uid=1001).content
            self.came[path] = self.site.cluster.epoch

    @rule(number=st.integers(0, 99), opens=st.booleans())
    def a_user_opens_a_file_or_closes_all(self, number: int, opens: bool) -> None:
        self.users_close_all()
        if self.contents and opens:
            self.user_opens(number)

    @rule(job=st.sampled_from(JOBS), path=st.sampled_from(PATHS), direction=st.sampled_from(("promote", "demote")),
          seconds=st.sampled_from((15.0, 100.0)))
    def stage(self, job: str, path: str, direction: str, seconds: float) -> None:
        with suppress(ControlError, ValueError):
            wanted = {"direction": direction, "path": f"/mnt/lustre{path}", "deadline_seconds": seconds}
            self.site.service.answer({"request": "stage", "job": job, "uid": 1001, "gid": 100, "user": "alice",
                                      "stages": [wanted]})
            self.last[direction] = self.site.cluster.epoch

    @rule(job=st.sampled_from(JOBS))
    def cancel(self, job: str) -> None:
        self.site.service.answer({"request": "stage-cancel", "job": job})

    @rule()
    def reload(self) -> None:
        self.site.restart()

    @rule(count=st.integers(1, 4))
    def tick(self, count: int) -> None:
        for _ in range(count):
            self.kills.run(until=self.site.cluster.now + 5)
            self.check()

    @rule(calls=st.integers(1, 40), what=st.sampled_from(("kill", "kill", "cancel", "pause", "resume")))
    def something_happens_meanwhile(self, calls: int, what: str) -> None:
        self.tick_with(self.kills.kill if what == "kill" else partial(self.cancel, "1") if what == "cancel" else
                       partial(self.hold, what), calls)

    @property
    def stagings(self) -> list[StagingAnswer]:
        return [each for job in JOBS for each in StagingsAnswer.from_json(
            self.site.service.answer({"request": "stage-state", "job": job})).stagings]

    def check(self) -> None:
        files = {inode.path: inode for inode in self.site.cluster.namespace.files()}
        assert {path: inode.content for path, inode in files.items()} == self.contents
        for each in self.stagings:
            words = each.sentence
            done, every, *_ = (int(word) for word in words.split() if word.isdigit())
            assert done <= every, words
            if each.open:
                assert self.site.cluster.epoch < each.deadline_at + 6, words
            elif each.id not in self.ended:
                self.ended.add(each.id)
                other = "demote" if each.direction == "promote" else "promote"
                if each.succeeded and self.last.get(other, 0.0) < each.created_at:
                    pool = "flash" if each.direction == "promote" else "hdd"
                    assert done == every, words
                    assert {files[path].layout.components[0].pool for path in files
                            if (path + "/").startswith(each.path + "/") and self.came[path] < each.created_at} <= {pool}
        moved: dict[tuple[bytes, str], str] = {}
        for place, fid, after in self.site.sql(
                "SELECT place, fid, layout_after FROM actions WHERE outcome = 'done' AND kind = 'migrate' ORDER BY id"):
            assert moved.get((place, fid)) != after, "moved twice"
            moved[place, fid] = after


TestSteps = Steps.TestCase
TestSteps.settings = settings(max_examples=20, stateful_step_count=20, deadline=None,
                              suppress_health_check=[HealthCheck.too_slow])
