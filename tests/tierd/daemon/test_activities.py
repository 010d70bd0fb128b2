"""Looking, planning, acting and judging beside each other: each has its turns, and none waits for another.

That files move and a verdict comes however long looks and calls take is in tests/tierd/simulation/test_crowded_node.py.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lustre.layout.model import Layout
from simulator.cluster import Cluster
from simulator.engine import Completion
from simulator.fluid.cluster import FluidCluster
from simulator.scheduler import VirtualScheduler
from simulator.settings import recorded_test_bed
from tests.tierd.daemon.test_hung_filesystem import Door
from tests.tierd.simulated import COVERING, STREAM
from tests.tierd.site import Clearing, Site, acting
from tierd.act.journal.entry import Entry
from tierd.acts import ActKind, Outcome
from tierd.daemon.activities import Activity, describe_acts
from tierd.daemon.client import ask
from tierd.model import Action


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


@dataclass
class Idle:
    """A service with parallel activities in virtual time, and how often each took a step."""

    at_once: VirtualScheduler
    site: Site
    steps: Counter[str] = field(default_factory=Counter)


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Idle]:
    cluster = FluidCluster(recorded_test_bed(), (STREAM,))
    with VirtualScheduler(cluster) as at_once:
        site = Site(cluster, Clearing(cluster), acting(tmp_path), tmp_path, parts={"executor": at_once.executor(8)})
        made = Idle(at_once, site)
        site.start()

        def counted(activity: Activity) -> threading.Event:
            wake = VirtualWake(cluster)

            def going_on() -> None:
                while True:
                    made.steps[activity.name] += 1
                    activity.run()
                    wake.wait(activity.pause_seconds())
                    wake.clear()

            at_once.spawn(activity.name, going_on)
            return wake

        site.service.start(counted)
        at_once.every("look", site.settings.sense.cycle_seconds, site.service.cycle)
        yield made
        at_once.close()
        site.service.close()


def test_an_idle_daemon_runs_each_activity_about_once_a_cycle(idle: Idle) -> None:
    """Looking for work every half second woke the processor four times a second on a node with nothing to do."""
    cycles = 20
    idle.at_once.run_until(cycles * idle.site.settings.sense.cycle_seconds)
    assert cycles / 2 < idle.steps["move"] <= 2 * cycles + 1
    assert idle.steps["default-layouts"] <= 2 * cycles + 1
    assert idle.steps["journal"] <= 2 * cycles + 1


@pytest.mark.parametrize("queued", [True, False])
def test_a_queued_act_and_the_end_of_a_pause_wake_an_activity(idle: Idle, queued: bool) -> None:
    idle.at_once.run_until(97.5)
    before = idle.steps["move"]
    if queued:
        action = Action(ActKind.MIGRATE, COVERING, "test", ("request", "root", "/f"), "/", "/f", 1)
        idle.site.service.gate.submit([action], 1)
    else:
        idle.site.service.answer({"request": "resume"})
    idle.at_once.run_until(97.6)
    assert idle.steps["move"] == before + 1


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
    assert (status["under_way_moves"], service.daemon.counters.cycles) == (1, 6)
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
