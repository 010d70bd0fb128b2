"""Looking, planning, acting and judging beside each other: what one waits for holds up no other."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lustre.layout.model import Layout
from simulator.cluster import Cluster
from simulator.costs import PRESETS
from simulator.engine import Completion
from simulator.fluid.cluster import FluidCluster
from simulator.scheduler import VirtualScheduler
from simulator.settings import recorded_test_bed
from tests.tierd.daemon.test_hung_filesystem import Door
from tests.tierd.logged import LISTENING
from tests.tierd.simulated import COVERING, STREAM
from tests.tierd.site import READ_AGAIN, Clearing, Site, acting
from tierd.act.journal.entry import Entry
from tierd.acts import ActKind, Outcome
from tierd.daemon.activities import Activity, describe_acts
from tierd.daemon.client import ask
from tierd.logs import heard
from tierd.model import Action

LOOK_SECONDS, CALL_SECONDS = 10.0, 2.0
ONSET = 100.0
"""When the neighbour comes."""


class Slow(Clearing):
    """A file system whose every call takes long; reading changelogs takes none, for that has a thread of its own."""

    def __init__(self, cluster: Cluster, sleep: Callable[[float], object]) -> None:
        super().__init__(cluster, costs=PRESETS["free"])
        self.sleep, self.seconds = sleep, 0.0
        for name in ("pools", "space", "path_of", "status", "xattr", "layout", "set_default_layout", "migrate"):
            setattr(self, name, self._slow(getattr(self, name)))

    def _slow(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def slow(*arguments: Any) -> Any:
            if self.seconds:
                self.sleep(self.seconds)
            return call(*arguments)

        return slow


@dataclass
class Busy:
    """A service with parallel activities in virtual time, and a client with occasional requests."""

    at_once: VirtualScheduler
    site: Site
    filesystem: Slow
    steps: Counter[str] = field(default_factory=Counter)
    look_seconds: float = 0.0
    said: list[tuple[float, str]] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    """How long answers took."""

    @property
    def cluster(self) -> Cluster:
        return self.site.cluster

    def when(self, words: str) -> float:
        return next((time for time, sentence in self.said if words in sentence), float("inf"))

    def moved(self) -> list[float]:
        """When files were moved."""
        return sorted(entry.intended_at - self.cluster.epoch + self.cluster.now
                      for entry in self.site.service.journal.entries(Outcome.DONE) if entry.kind == "migrate")

    def ask(self) -> None:
        """As tierctl would, and systemd's watchdog."""
        for request in ({"request": "status"}, {"request": "findings"}, {"request": "explain", "id": "F1"}):
            begun = self.cluster.now
            if request["request"] != "explain" or self.site.service.journal.key_of_finding(1):
                self.site.service.answer(request)
            self.waited.append(self.cluster.now - begun)
        assert self.site.service.beat()


class VirtualWake(threading.Event):
    """Wakes the activity that waits for it, in virtual time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._set = False
        self._woken = Completion()

    def set(self) -> None:
        self._set = True
        end(self._woken)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            self._woken = Completion()
            self._cluster.engine.after(timeout or 0.0, end, self._woken)
            self._cluster.wait_for(self._woken)
        return self._set


def end(wait: Completion) -> None:
    if not wait.done:
        wait.succeed()


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Busy]:
    cluster = FluidCluster(recorded_test_bed(), (STREAM, replace(READ_AGAIN, start_seconds=ONSET, keep=2000)))
    with VirtualScheduler(cluster) as at_once:
        filesystem = Slow(cluster, at_once.sleep)
        site = Site(cluster, filesystem, acting(tmp_path), tmp_path, parts={"executor": at_once.executor(8)},
                    before_reading=lambda: at_once.sleep(made.look_seconds))
        made = Busy(at_once, site, filesystem)
        LISTENING.enter_context(heard(lambda words: made.said.append((cluster.now, words))))
        site.start()

        def counted(activity: Activity) -> threading.Event:
            def step() -> None:
                made.steps[activity.name] += 1
                activity.run()

            wake = VirtualWake(cluster)

            def going_on() -> None:
                while True:
                    step()
                    wake.wait(activity.pause_seconds())
                    wake.clear()

            at_once.spawn(activity.name, going_on)
            return wake

        site.service.start(counted)
        at_once.every("look", site.settings.sense.cycle_seconds, site.service.cycle)
        at_once.every("ask", 3.0, made.ask)
        yield made
        at_once.close()
        site.service.close()


def test_an_idle_daemon_runs_each_activity_about_once_a_cycle(busy: Busy) -> None:
    """Looking for work every half second woke the processor four times a second on a node with nothing to do."""
    cycles = 20
    busy.at_once.run_until(cycles * busy.site.settings.sense.cycle_seconds)
    assert cycles / 2 < busy.steps["move"] <= 2 * cycles + 1
    assert busy.steps["default-layouts"] <= 2 * cycles + 1
    assert busy.steps["journal"] <= 2 * cycles + 1


@pytest.mark.parametrize("queued", [True, False])
def test_a_queued_act_and_the_end_of_a_pause_wake_an_activity(busy: Busy, queued: bool) -> None:
    busy.at_once.run_until(ONSET - 2.5)
    before = busy.steps["move"]
    if queued:
        action = Action(ActKind.MIGRATE, COVERING, "test", ("request", "root", "/f"), "/", "/f", 1)
        busy.site.service.gate.submit([action], 1)
    else:
        busy.site.service.answer({"request": "resume"})
    busy.at_once.run_until(ONSET - 2.4)
    assert busy.steps["move"] == before + 1


def test_files_move_and_a_verdict_comes_however_long_looks_and_calls_take(busy: Busy) -> None:
    """On a loaded file system nothing was moved in 4 minutes, and there was no verdict in 5."""
    busy.at_once.run_until(ONSET)
    busy.look_seconds, busy.filesystem.seconds = LOOK_SECONDS, CALL_SECONDS
    while busy.when("KEPT: it helped") == float("inf") and busy.cluster.now < ONSET + 400:
        busy.at_once.run_until(busy.cluster.now + 10)
    busy.at_once.run_until(busy.cluster.now + 60)
    found, acted, judged = busy.when("FOUND noisy"), busy.when("SET default layout"), busy.when("KEPT: it helped")
    assert found < ONSET + 90
    assert acted < found + 60
    assert judged < acted + 120
    moved = busy.moved()
    assert len(moved) > 5
    assert moved[0] < judged
    longest = max(later - earlier for earlier, later in pairwise(moved))
    assert longest < 60
    assert max(busy.waited) == 0, "answers wait for no activity"
    assert busy.site.service.activities.alive()


def test_status_names_the_steps_that_wait(busy: Busy) -> None:
    busy.at_once.run_until(ONSET)
    busy.filesystem.seconds = 1000.0
    busy.at_once.run_until(ONSET + 240)
    status: Mapping[str, Any] = busy.site.service.answer({"request": "status"})
    assert {each["name"] for each in status["activities"] if each["under_way_seconds"] > 60} >= {"facts", "plan"}
    assert any("has taken" in words and "does not answer" in words for _, words in busy.said)
    assert status["last_cycle"] > busy.cluster.epoch - 10, "the view is as fresh as ever"


def test_with_threads_of_its_own_a_move_that_hangs_holds_up_nothing(tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """Real threads: a door instead of time."""
    cluster = Cluster(recorded_test_bed(), (STREAM,))
    filesystem = Clearing(cluster)
    cluster.make_file("/proj/keep/large", 1 << 20)
    settings = acting(tmp_path)
    executor = ThreadPoolExecutor(2)
    site = Site(cluster, filesystem, settings, tmp_path, parts={"executor": executor})
    site.start()
    service = site.service
    door, migrate = Door(), filesystem.migrate
    ended = threading.Event()

    def waiting(path: str, layout: Layout) -> None:
        door()
        migrate(path, layout)
        ended.set()

    monkeypatch.setattr(filesystem, "migrate", waiting)
    cluster.advance(5)
    service.cycle()
    service.start()
    cluster.advance(5)
    service.cycle()
    door.open.clear()
    assert ask(settings.act.socket, {"request": "promote", "path": "/proj/keep/large"})["files"] == 1
    service.cycle()
    assert door.waiting.wait(20)
    for _ in range(3):
        cluster.advance(5)
        service.cycle()
    status = ask(settings.act.socket, {"request": "status"})
    assert (status["under_way_moves"], status["cycles"]) == (1, 6)
    for request in ({"request": "submit", "paths": ["/proj/x"]}, {"request": "history"}, {"request": "top"},
                    {"request": "explain", "id": "O1"}, {"request": "pause"}):
        assert ask(settings.act.socket, request, 10.0), "no answer waits for it"
    assert ask(settings.act.socket, {"request": "status"})["paused"].startswith("by ")
    closing = threading.Thread(target=service.close)
    closing.start()
    door.open.set()
    closing.join(20)
    assert not closing.is_alive()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(lambda: None)
    assert ended.is_set(), "a move in progress ended before the journal was closed"


def test_a_message_names_the_first_acts_under_way_and_says_how_many_there_are() -> None:
    acts = [Entry(n, ActKind.MIGRATE, f"/d/{n}", None, None, 4096, Outcome.UNDER_WAY, "", "", 0.0) for n in range(16)]
    assert describe_acts(acts) == ("migrate of /d/0, 4 kB; migrate of /d/1, 4 kB; migrate of /d/2, 4 kB; "
                                   "and 13 more acts")
    assert describe_acts(acts[:1]) == "migrate of /d/0, 4 kB"
