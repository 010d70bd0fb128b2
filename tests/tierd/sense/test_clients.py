"""Counters of clients: impossible ones, and two readings. Real ones are in test_exposition_and_parameters."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.parameters import write_parameters
from simulator.settings import recorded_test_bed
from tests.tierd.sense.clocks import SettableClock
from tests.tierd.simulated import STREAM
from tierd.model import ClientLoad
from tierd.sense import nodes
from tierd.sense.http_client import SourceError
from tierd.sense.nodes import ClientPoller, Counters, Turn, client_loads

POOLS = {f"lustre-OST000{n}": "flash" if n < 2 else "hdd" for n in range(6)}


@pytest.mark.parametrize("line", [
    b'lustre_lnet_omni_path_parameter{setting="krcvqs"} +Inf',
    b'lustre_llite_read_ahead_hits_total{fs="l",mount="/m"} NaN',
    b'lustre_llite_statahead_started_total{fs="l",mount="',
    b'lustre_osc_pages_per_rpc_bucket{fs="l",mount="/m",direction="read",le="many"} 3',
    b'lustre_osc_pages_per_rpc_bucket{fs="l",mount="/m",direction="read",le="-Inf"} 3'])
def test_an_impossible_sample_of_a_client_makes_its_exposition_invalid(line: bytes) -> None:
    with pytest.raises(SourceError, match="n17"):
        nodes.parse_mounts(line + b"\n", "http://n17:9169/metrics")


def made(hits: float, **tables: dict[int, float]) -> Counters:
    found = Counters(settings={"fsname": "lustre", "fabric_driver": {"krcvqs": 2}})
    found.add(("read_ahead",), {"hits": hits})
    for direction, table in tables.items():
        found.limit(("osc", "hdd", direction), 8.0, 1024.0)
        found.add(("in_flight", "osc", "hdd", direction), table)
    return found


def loads(before: Counters, after: Counters) -> list[ClientLoad]:
    return list(client_loads(Turn("n1", {"/m": before}, {"/m": after}, 60.0, 30.0)))


def test_two_readings_make_a_load() -> None:
    (load,) = loads(made(100, write={1: 5, 8: 10}), made(150, write={1: 5, 8: 30}))
    assert (load.read_ahead, load.seconds, load.fabric_driver) == ({"hits": 50}, 30.0, {"krcvqs": 2})
    (rpcs,) = load.rpcs
    assert (dict(rpcs.in_flight), rpcs.rpcs, rpcs.max_in_flight) == ({8: 20}, 20, 8)


@pytest.mark.parametrize(("before", "after"), [
    (made(100), made(50)), (made(1, write={8: 10}), made(1, write={8: 9})), (made(1, write={8: 10}), made(1))])
def test_a_mount_whose_counters_fell_has_no_load(before: Counters, after: Counters) -> None:
    assert loads(before, after) == []


def test_clients_take_turns_and_what_is_known_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "NODES_PER_CALL", 2)
    clock, requested = SettableClock(), []

    def look_at(name: str) -> Callable[[object], dict[str, Counters]]:
        def look(_: object) -> dict[str, Counters]:
            requested.append(name)
            return {"/m": made(clock.at)}
        return look

    turns = ClientPoller({name: look_at(name) for name in ("a", "b", "c")}, clock)
    known = []
    for _ in range(4):
        known.append(sorted(load.client for load in turns({})))
        clock.at += 30
    assert requested == ["a", "b", "c", "a", "b", "c", "a", "b"]
    assert known == [[], ["a"], ["a", "b", "c"], ["a", "b", "c"]]


def test_an_unreachable_client_is_reported_and_its_values_unknown() -> None:
    clock, silent = SettableClock(), [False]

    def look(_: object) -> dict[str, Counters]:
        if silent[0]:
            raise SourceError("http://n1: no answer")
        return {"/m": made(clock.at)}

    turns = ClientPoller({"n1": look}, clock)
    turns({})
    clock.at += 30
    assert len(turns({})) == 1
    silent[0] = True
    clock.at += 30
    assert turns({}) == ()
    assert turns.faults == {"n1": "http://n1: no answer"}
    silent[0] = False
    clock.at += 30
    assert turns({}) == ()
    assert turns.faults == {}


def test_clients_of_a_simulated_cluster_show_what_they_do(tmp_path: Path) -> None:
    cluster, clock = Cluster(recorded_test_bed(), (STREAM,)), SettableClock()
    tree = Tree(Roots.of(tmp_path / "proc", tmp_path / "sys"))
    turns = ClientPoller({"sim": lambda pools: nodes.read_mounts(tree, pools)}, clock)
    seen: tuple[ClientLoad, ...] = ()
    for _ in range(2):
        cluster.advance(30)
        clock.at += 30
        write_parameters(cluster, tmp_path, clients=True)
        seen = turns(POOLS)
    rpcs = {(each.kind, each.pool, each.direction): each for load in seen for each in load.rpcs if each.rpcs}
    written = rpcs["osc", "hdd", "write"]
    assert written.rpcs > 100
    assert written.max_in_flight == 8
    assert sum(pages * count for pages, count in written.pages.items()) * 4096 == pytest.approx(30 * 66e6, rel=0.2)
    assert ("osc", "flash", "write") not in rpcs
