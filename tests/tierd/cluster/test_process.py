"""Movers and readers as processes wire them: leases, states, defects, and settings that do not allow them."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tierd.cluster.broker import Broker, new_fsname, until
from tests.tierd.cluster.cluster_world import over_nats
from tests.tierd.cluster.reader_world import KEY, SETTINGS, Leader, MadeChangelog, lives, path_of
from tests.tierd.later import raising
from tierd.clock import SystemClock
from tierd.cluster.messages import Names
from tierd.cluster.mover import Mover
from tierd.cluster.process import reader_of, run_worker, serve_mover, serve_reader
from tierd.cluster.reader import Reader
from tierd.config.act import ActSettings
from tierd.config.settings import ClusterSettings, Settings

SERVERS = ClusterSettings(servers=("nats://127.0.0.1:1",))
MDTS = ("MDT0000", "MDT0001", "MDT0002", "MDT0003")


class Filesystem(MadeChangelog):
    """As much of a file system as a reader needs."""

    def __init__(self, fsname) -> None:
        super().__init__()
        self.fsname = fsname
        self.path_of = path_of
        self.changelog = self.read
        self.clear_changelog = self.clear


class Keys:
    """As much of the folder of the claim as a reader needs."""

    def names(self) -> list[str]:
        return ["key"]

    def content(self, name: str) -> str:
        return KEY


def settings_for(name: str) -> Settings:
    made = Settings(cluster=ClusterSettings(name=name), reader=replace(SETTINGS, max_mdts=2))
    return replace(made, sense=replace(made.sense, readers=dict.fromkeys(MDTS, "cl1")))


def reader(filesystem, connection, name: str) -> Reader:
    return reader_of(settings_for(name), filesystem, MDTS, connection, Keys(), SystemClock())  # type: ignore[arg-type]


def test_two_readers_share_four_mdts_and_one_takes_over_what_the_other_releases(connect) -> None:
    filesystem = Filesystem(new_fsname())
    leader = Leader(connect(), Names(filesystem.fsname), dict.fromkeys(MDTS, 0))
    leader.step()
    readers = [reader(filesystem, connect(), name) for name in ("r1", "r2")]
    threads = [thread for each in readers for thread in each.start()]
    for mdt in MDTS:
        filesystem.records[mdt] += lives(*range(40))
    until(lambda: leader.step() or leader.counts[0] == 40 * len(MDTS), "all four are read", 30.0)
    held = [set(each.state().mdts) for each in readers]
    assert [len(mdts) for mdts in held] == [2, 2]
    assert held[0] | held[1] == set(MDTS)
    until(lambda: leader.step() or {state.name for state in leader.source.readers} == {"r1", "r2"}, "both are shown")
    until(lambda: all(filesystem.cleared(mdt) == 120 for mdt in MDTS), "all are cleared")
    readers[0].stop()
    for name in held[0]:
        filesystem.records[name] += lives(40)
    third = reader(filesystem, connect(), "r3")
    threads += third.start()
    until(lambda: leader.step() or leader.counts[0] == 40 * len(MDTS) + 2, "r3 reads them", 30.0)
    assert set(third.state().mdts) == held[0]
    for each in (readers[1], third):
        each.stop()
    for thread in threads:
        thread.join(10)


@pytest.mark.parametrize(("serve", "settings", "problem"), [
    (serve_reader, Settings(), "a reader needs [cluster] servers"),
    (serve_reader, Settings(cluster=SERVERS), "reader.enabled = true"),
    (serve_mover, Settings(act=replace(ActSettings(), dry_run=False)), "a mover needs [cluster] servers"),
    (serve_mover, Settings(cluster=SERVERS), "act.dry_run is true"),
])
def test_a_process_does_not_start_with_settings_that_do_not_allow_it(serve, settings: Settings, problem: str,
                                                                    caplog) -> None:
    assert serve(settings) == 1
    assert problem in caplog.text


@pytest.fixture
def mover(shared_broker: Broker, tmp_path: Path):
    world = over_nats(tmp_path, shared_broker, movers=0)
    yield world.mover("m1", start=False)
    world.close()


def run_until(mover: Mover, end: threading.Event, states: list[str]) -> bool:
    return run_worker(mover, lambda **words: states.append(words.get("STATUS", "")), end, 10.0, 0.02)


def with_defect(mover: Mover, method: str) -> Mover:
    mover.__class__ = type("BrokenMover", (type(mover),), {method: raising(KeyError("a defect"))})
    return mover


@pytest.mark.parametrize("method", ["describe", "_extend_leases"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_of_a_thread_beside_the_work_ends_the_process(mover, method: str) -> None:
    end = threading.Event()
    assert not run_until(with_defect(mover, method), end, [])
    assert not end.is_set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_in_the_work_stops_the_mover_and_keeps_it_visible(mover) -> None:
    with_defect(mover, "step")
    end, states, results = threading.Event(), list[str](), list[bool]()
    thread = threading.Thread(target=lambda: results.append(run_until(mover, end, states)))
    thread.start()
    until(lambda: any("stopped: a defect of the mover" in state for state in states), "it reports that it stopped")
    assert thread.is_alive()
    end.set()
    thread.join(10)
    assert results == [True]
