"""What every dispatch does: one suite for the engine in this process and for movers over NATS."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tierd.cluster.broker import Broker, until
from tests.tierd.cluster.cluster_world import ClusterWorld, in_process, over_nats
from tierd.acts import Outcome
from tierd.cluster.dispatch import NatsDispatch
from tierd.config.act import Limits, Rate


@pytest.fixture(params=["in-process", "nats"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ClusterWorld]:
    made = (in_process(tmp_path) if request.param == "in-process"
            else over_nats(tmp_path, request.getfixturevalue("shared_broker")))
    yield made
    made.close()


@pytest.fixture
def nats_world(shared_broker: Broker, tmp_path: Path) -> Iterator[ClusterWorld]:
    made = over_nats(tmp_path, shared_broker)
    yield made
    made.close()


def ready(world: ClusterWorld) -> None:
    until(lambda: world.dispatch.trouble() is None, "moves can be handed over")


def test_files_are_moved_and_the_journal_knows(world: ClusterWorld) -> None:
    paths = world.files(40)
    before = {path: world.lustre.contents(path) for path in paths}
    ready(world)
    world.submit(*paths)
    assert world.pump_until_empty() == {"done": 40}
    assert {world.pool(path) for path in paths} == {"flash"}
    assert {path: world.lustre.contents(path) for path in paths} == before
    assert world.outcomes() == dict.fromkeys(paths, "done")
    entries = list(world.journal.entries())
    assert all(entry.layout_before and entry.layout_before.components[0].pool == "hdd" for entry in entries)
    assert {entry.place: entry.fid for entry in entries} == {path: world.lustre.names[path].fid for path in paths}
    assert not world.journal.unfinished()


def test_followers_have_the_intents_before_a_move_is_sent_and_its_outcome_before_the_result_is_acknowledged(
        nats_world: ClusterWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    nats = nats_world.dispatch.connection  # type: ignore[attr-defined]
    for of, name in ((nats_world.journal, "publish"), (nats, "publish_all"), (nats, "acknowledge_all")):
        asked = getattr(of, name)
        monkeypatch.setattr(of, name, lambda *words, name=name, asked=asked: steps.append(name) or asked(*words))
    nats_world.submit(*nats_world.files(1))
    assert nats_world.pump_until_empty() == {"done": 1}
    assert (steps[:2], steps[-2:]) == (["publish", "publish_all"], ["publish", "acknowledge_all"])


def test_each_file_has_its_own_outcome(world: ClusterWorld) -> None:
    paths = world.files(6)
    ready(world)
    world.lustre.open_writer(paths[0])
    world.lustre.names[paths[1]].mode |= 0o111
    world.lustre.write(paths[2], b"more", 200)
    world.submit(*paths)
    assert world.pump_until_empty() == {"done": 3, "gave-way": 1, "refused": 2}
    assert world.outcomes() == {paths[0]: "gave-way", paths[1]: "refused", paths[2]: "refused",
                                **dict.fromkeys(paths[3:], "done")}
    assert world.pool(paths[0]) == world.pool(paths[1]) == world.pool(paths[2]) == "hdd"


def test_a_large_busy_file_costs_the_others_no_time(world: ClusterWorld) -> None:
    """Its bytes take five minutes of the budget, which it returns because nothing was copied."""
    world.limits = Limits(1e6, 1e5, per_pool=Rate(1e6, 1e5), per_target=Rate(1e6, 1e5))
    world.gate_with(world.dispatch)
    small = world.files(3)
    world.lustre.create("/d/large", bytes(30_000_000))
    world.lustre.open_writer("/d/large")
    ready(world)
    world.submit("/d/large", size_bytes=30_000_000)
    assert world.pump_until_empty() == {"gave-way": 1}
    world.submit(*small)
    assert world.pump_until_empty() == {"done": 3}


def test_a_doubtful_outcome_stops_everything(world: ClusterWorld) -> None:
    paths = world.files(30)
    ready(world)
    world.lose_project_at_exchange = True
    world.submit(*paths)
    seen: list[str] = []
    for _ in range(40):
        seen += [outcome.result for outcome in world.gate.pump(world.clock.now() + 0.25)]
        if world.gate.operating_state.paused and not world.gate.under_way:
            break
    assert Outcome.DOUBTFUL in seen
    assert "not as expected" in world.gate.operating_state.paused
    assert world.gate.waiting + len(seen) >= 30
    assert world.gate.pump(world.clock.now() + 0.25) == []


def test_more_is_sent_when_half_of_the_waiting_work_is_done(nats_world: ClusterWorld) -> None:
    """100 files end per second: two seconds of work may wait besides that of the threads, and one does before more."""
    world = nats_world
    dispatch = world.dispatch
    assert isinstance(dispatch, NatsDispatch)
    ready(world)
    assert dispatch.room() == 16, "two movers with two threads, and four files of 0.25 s in a message"
    dispatch._ended_at += [(world.clock.now() + 3600.0, 9000), (world.clock.now(), 1000)]  # the clock was set back
    rooms = {}
    for under_way in (0, 16, 116, 117, 216):
        dispatch._from_source = Counter({"lustre-OST0002": under_way})
        rooms[under_way] = dispatch.room()
    dispatch._from_source.clear()
    assert rooms == {0: 216, 16: 200, 116: 100, 117: 0, 216: 0}


def test_undone_moves_are_queued_again(nats_world: ClusterWorld) -> None:
    world = nats_world
    paths = world.files(8)
    ready(world)
    for each in world.closing:  # the movers end, so nobody takes the messages
        if getattr(each, "__name__", "") == "stop":
            each()
    world.submit(*paths)
    world.gate.pump(world.clock.now() + 0.5)
    assert world.gate.under_way == 8
    world.gate.operating_state.pause("by hand")
    outcomes = world.gate.attend()
    assert [outcome.result for outcome in outcomes] == ["gave-way"] * 8
    assert (world.gate.waiting, world.gate.under_way) == (8, 0)
    assert {outcome.detail for outcome in outcomes} == {"paused: by hand"}
    world.mover("m9")
    world.gate.operating_state.resume()
    ready(world)
    assert world.pump_until_empty() == {"done": 8}
