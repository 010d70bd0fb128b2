"""Collectors that hang: the pass ends, the others are shown, nothing piles up."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from exporter import clock, exposition
from exporter.app import App
from exporter.collector import Collector, Settings
from exporter.collectors import COLLECTORS
from exporter.exposition import Gauge
from exporter.hanging import MAX_HANGING
from exporter.scrape import Scraper, WorkerThread
from exporter.self_metrics import registry
from httpserver.connections import Connections, Slot
from httpserver.server import SLOT_KEY
from lustre.parameters import Roots, Tree

WAIT = 20.0


class VirtualTime:
    """Time passes only while all unfinished collectors hang."""

    def __init__(self, hanging: Callable[[], set[str]]) -> None:
        """``hanging`` names the collectors that hang at this moment."""
        self._hanging = hanging
        self._others = set(threading.enumerate())
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def wait(self, future: Future[Any], seconds: float) -> bool:
        while not clock.wait(future, 0.001):
            threads = {thread.name for thread in threading.enumerate() if thread not in self._others}
            out = {name.removeprefix("collector-") for name in threads if name.startswith("collector-")}
            if out <= self._hanging() and not future.done():
                self.now += seconds
                return False
        return True


def wait_for_collectors() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("collector-"):
            thread.join(WAIT)


@dataclass
class Hanging:
    """A collector that waits until it is released."""

    name: str
    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go_on: threading.Event = field(default_factory=threading.Event)
    entering: Callable[[], None] = lambda: None
    began: int = 0

    def collector(self) -> Collector:
        family = Gauge(f"lustre_{self.name}", "Shown.", ("fs",), "x.*.y")

        def collect(node, page) -> None:
            self.began += 1
            self.entering()
            self.entered.release()
            assert self.go_on.wait(WAIT)
            page.sample(family, b'fs="a"', 1)

        return Collector(self.name, "help", (family,), lambda context: collect)


@pytest.fixture
def node(tmp_path):
    """A scraper of such collectors, and its time."""
    def make(*hanging: Hanging, deadline: float = 10.0) -> tuple[Scraper, VirtualTime]:
        settings = Settings(frozenset(one.name for one in hanging), deadline_seconds=deadline)
        tree = Tree(Roots.of(tmp_path, tmp_path))
        time = VirtualTime(lambda: {one.name for one in hanging if not one.go_on.is_set()})
        return Scraper(tree, [one.collector() for one in hanging], settings, time.clock, wait=time.wait), time

    return make


def shown(result) -> list[str]:
    return [family.name for family, _ in result.families]


def test_several_that_hang_take_one_deadline_and_one_thread_each(node) -> None:
    stuck, well = [Hanging(name) for name in "abcdef"], Hanging("well")
    well.go_on.set()
    running, time = node(*stuck, well, deadline=10.0)
    for _ in range(21):
        assert shown(running.run()) == ["lustre_well"]
        assert time.now == pytest.approx(10.0)
    names = [f"collector-{one.name}" for one in stuck]
    assert sorted(thread.name for thread in threading.enumerate() if thread.name in names) == names
    assert [one.began for one in stuck] == [1] * len(stuck)
    assert all("still reading" in running.outcomes[one.name].reason for one in stuck)
    for one in stuck:
        one.go_on.set()
    wait_for_collectors()
    assert len(shown(running.run())) == 7
    assert all(outcome.success for outcome in running.outcomes.values())


def test_the_slow_one_is_shown_when_it_is_done_in_time(node) -> None:
    slow = Hanging("slow")
    other = Hanging("other", entering=slow.go_on.set)
    other.go_on.set()
    running, time = node(slow, other, deadline=8.0)
    assert shown(running.run()) == ["lustre_slow", "lustre_other"]
    assert time.now == 1.0  # the turn of the slow one


def scraped(app: App, timeout: str) -> bytes:
    with socket.socket() as client:
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/metrics", SLOT_KEY: Slot(Connections(), client),
                   "HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS": timeout}
        return b"".join(app(environ, lambda *_: lambda _: None))


@pytest.mark.parametrize(("timeout", "pass_seconds"), [("9", 8.5), ("0.501", 2)])
def test_the_scrape_timeout_of_prometheus_shortens_a_pass_to_two_seconds_at_least(node, timeout, pass_seconds) -> None:
    stuck = Hanging("stuck")
    running, time = node(stuck, deadline=1000.0)
    assert scraped(App(running, CollectorRegistry(), "/metrics", time.clock), timeout) == b""
    assert running.outcomes["stuck"].reason == f"not finished after {pass_seconds} s; reading a parameter may hang"
    stuck.go_on.set()


@pytest.mark.parametrize("header", ["", "nan", "-1", "0.1", "soon", "inf", "1e300"])
def test_an_invalid_scrape_timeout_changes_nothing(node, header) -> None:
    well = Hanging("well")
    well.go_on.set()
    assert b"lustre_well" in scraped(App(node(well)[0], CollectorRegistry(), "/metrics"), header)


def test_scrapes_while_one_hangs_share_its_pass_and_come_back(tmp_path, serve) -> None:
    stuck = Hanging("stuck")
    settings = Settings(frozenset({"stuck"}), deadline_seconds=WAIT)
    scraper = Scraper(Tree(Roots.of(tmp_path, tmp_path)), [stuck.collector()], settings, clock.monotonic)
    served = serve(App(scraper, CollectorRegistry(), "/metrics"))
    bodies: list[bytes] = []
    clients = [threading.Thread(target=lambda: bodies.append(served.get("/metrics")[2])) for _ in range(20)]
    for client in clients:
        client.start()
    assert stuck.entered.acquire(timeout=WAIT)
    assert served.get("/-/healthy")[0] == 200
    assert served.get("/")[0] == 200
    stuck.go_on.set()
    for client in clients:
        client.join(WAIT)
    assert len(bodies) == 20
    assert all(b"lustre_stuck" in body for body in bodies)


def test_a_read_that_times_out_by_itself_is_an_error_of_that_read() -> None:
    """ETIMEDOUT of a parameter raises the same exception as a time limit."""

    def read() -> int:
        raise TimeoutError(110, "Connection timed out")

    with pytest.raises(TimeoutError, match="Connection timed out"):
        WorkerThread[int]("x").run(read, WAIT)


def test_a_call_that_hangs_does_not_keep_the_process_from_ending() -> None:
    code = ("import threading; from exporter.scrape import LateError, WorkerThread\n"
            "worker = WorkerThread('x')\n"
            "try: worker.run(threading.Event().wait, 0.01)\n"
            "except LateError: print('late')")
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT, check=True)
    assert ended.stdout == "late\n"


def scraper_of(tree: Tree, *names: str, per_target: bool = True, deadline: float = 4.0) -> Scraper:
    settings = Settings(frozenset(names), osc_per_target=per_target, deadline_seconds=deadline)
    return Scraper(tree, COLLECTORS, settings, clock.monotonic)


def tree_of(root: Path) -> Tree:
    return Tree(Roots.of(root / "proc", root / "sys"))


def lines_of(scraper: Scraper) -> list[bytes]:
    """What a pass shows in which no collector failed, with the metrics of the exporter."""
    result = scraper.run()
    assert {outcome.reason for outcome in scraper.outcomes.values()} == {""}
    return b"".join(exposition.render(result, registry(scraper), openmetrics=False)).splitlines()


def unreadable(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if line.startswith(b"lustre_exporter_target_unreadable{")]


OSC = "sys/fs/lustre/osc/lustre-OST000{}-osc-ff1100011d6c9800/{}"
LOV = "lustre-clilov-ff1100011d6c9800"
DEBUG_OSC = "sys/kernel/debug/lustre/osc/lustre-OST000{}-osc-ff1100011d6c9800/{}"


def targets() -> dict[str, str]:
    files = {"proc/mounts": "m@tcp:/lustre /mnt lustre rw 0 0\n"}
    for number in range(4):
        files[DEBUG_OSC.format(number, "stats")] = "snapshot_time 9.5 secs.nsecs\nopen 3 samples [reqs]\n"
        files[OSC.format(number, "kbytestotal")] = "100\n"
        files[OSC.format(number, "max_rpcs_in_flight")] = "8\n"
    return files


def shown_targets(lines: list[bytes], family: bytes) -> set[bytes]:
    return {line.partition(b'target="')[2][:7] for line in lines if line.startswith(family + b"{")}


@pytest.mark.parametrize("per_target", [True, False])
@pytest.mark.parametrize("hanging", [OSC.format(1, "max_rpcs_in_flight"), DEBUG_OSC.format(1, "stats"),
                                     OSC.format(1, "kbytestotal")])  # fmt: skip
def test_one_file_that_hangs_costs_one_target(grow, hanging, per_target) -> None:
    root = grow(targets())
    scraper = scraper_of(tree_of(root), "osc", "pools", per_target=per_target)
    before = lines_of(scraper)
    assert b'lustre_exporter_filesystem_up{fs="lustre"} 1.0' in before
    text = (root / hanging).read_text()
    (root / hanging).unlink()
    os.mkfifo(root / hanging)
    for _ in range(2):
        after = lines_of(scraper)
        assert b'lustre_exporter_filesystem_up{fs="lustre"} 0.0' in after
        (own,) = unreadable(after)
        assert b'{fs="lustre",' in own
        assert b'target="OST0001"' in own
    assert any(line.startswith(b"lustre_osc_operations_total{") for line in after)
    if per_target:
        everyone = {b"OST0000", b"OST0001", b"OST0002", b"OST0003"}
        assert shown_targets(before, b"lustre_osc_max_rpcs_in_flight") == everyone
        assert shown_targets(after, b"lustre_osc_max_rpcs_in_flight") == everyone - {b"OST0001"}
        assert shown_targets(after, b"lustre_osc_operations_total") == everyone - {b"OST0001"}
    left = [thread for thread in threading.enumerate() if thread.name.startswith("collector-")]
    assert len(left) == 1
    with (root / hanging).open("w") as released:
        released.write(text)
    left[0].join(WAIT)
    assert not left[0].is_alive()
    (root / hanging).unlink()
    (root / hanging).write_text(text)
    last = lines_of(scraper)
    assert unreadable(last) == []
    if per_target:
        assert shown_targets(last, b"lustre_osc_max_rpcs_in_flight") == everyone


class SlowTree(Tree):
    """Its listings below one folder wait until they are released."""

    def __init__(self, roots: Roots, folder: str) -> None:
        super().__init__(roots)
        self._folder = folder
        self.go_on = threading.Event()
        self.go_on.set()
        self.hung = 0

    def _wait(self, folder: str) -> None:
        if folder == self._folder and not self.go_on.is_set():
            self.hung += 1
            assert self.go_on.wait(WAIT)

    def devices(self, kind: str) -> tuple[str, ...]:
        self._wait(kind)
        return super().devices(kind)

    def children(self, folder: str) -> tuple[str, ...]:
        self._wait(folder)
        return super().children(folder)

    def path(self, parameter: str) -> str | None:
        self._wait(parameter)
        return super().path(parameter)


@pytest.mark.parametrize(("folder", "listing"), [
    ("osc", b'{fs="",parameter="osc.*",target=""}'),
    (f"lov/{LOV}/pools", b'{fs="lustre",parameter="lov.*.pools.*",target=""}'),
])  # fmt: skip
def test_a_listing_that_hangs_costs_one_thread_and_no_known_target(grow, folder, listing) -> None:
    root = grow(targets() | {f"sys/kernel/debug/lustre/lov/{LOV}/pools/flash": "lustre-OST0001_UUID\n"})
    tree = SlowTree(Roots.of(root / "proc", root / "sys"), folder)
    scraper = scraper_of(tree, "osc", "pools")

    def scrape() -> tuple[list[bytes], bytes]:
        lines = lines_of(scraper)
        own = b"".join(unreadable(lines))
        return [line for line in lines if line.startswith((b"lustre_osc_", b"lustre_pool_"))], own

    before, _ = scrape()
    assert any(b'pool="flash"' in line for line in before)
    tree.go_on.clear()
    for _ in range(3):
        during, own = scrape()
        assert during == before
        assert listing in own
    assert tree.hung == 1
    left = [thread for thread in threading.enumerate() if thread.name.startswith("collector-")]
    tree.go_on.set()
    for thread in left:
        thread.join(WAIT)
    assert scrape() == (before, b"")


def test_a_search_that_hangs_costs_one_target(grow) -> None:
    root = grow(targets())
    tree = SlowTree(Roots.of(root / "proc", root / "sys"), "osc/lustre-OST0000-osc-ff1100011d6c9800/stats")
    tree.go_on.clear()
    lines = lines_of(scraper_of(tree, "osc"))
    assert shown_targets(lines, b"lustre_osc_operations_total") == {b"OST0001", b"OST0002", b"OST0003"}
    tree.go_on.set()


def test_what_hangs_counts_in_the_next_pass_if_this_one_is_short_and_too_many_fail_their_collector(grow) -> None:
    """A busy node needs a moment for every read, and the last collectors of a pass have no more."""
    root = grow(targets())
    scraper = scraper_of(tree_of(root), "osc", deadline=0.5)
    full = [("osc", f"x{number}", "stats") for number in range(MAX_HANGING)]
    place = root / DEBUG_OSC.format(1, "stats")
    place.unlink()
    os.mkfifo(place)
    scraper.run()
    assert "not finished" in scraper.outcomes["osc"].reason
    assert scraper.memory.parameters.hanging.all() == []
    assert all(map(scraper.memory.parameters.hanging.add, full))
    scraper.run()
    assert "still reading" in scraper.outcomes["osc"].reason
    scraper.memory.parameters.hanging.remove(full.pop())
    assert any(b"OST0001" in line for line in unreadable(lines_of(scraper)))
    place.open("w").close()
    wait_for_collectors()
