"""Counters of clients: impossible ones, and two readings. Real ones are in test_exposition_and_parameters."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.parameters import write_parameters
from simulator.settings import recorded_test_bed
from tests.tierd.sense.clocks import SettableClock
from tests.tierd.simulated import STREAM
from tierd.model import ClientLoad, RpcLoad
from tierd.sense import nodes
from tierd.sense.http_client import SourceError
from tierd.sense.nodes import ClientPoller, client_load, mounts_of_node

POOLS = {f"lustre-OST000{n}": "flash" if n < 2 else "hdd" for n in range(6)}


def rpcs_of(load: ClientLoad) -> dict[tuple[str, str, str], RpcLoad]:
    return {(each.kind, each.pool, each.direction): each for each in load.rpcs}


@pytest.mark.parametrize("line", [
    b'lustre_lnet_omni_path_parameter{setting="krcvqs"} +Inf',
    b'lustre_llite_read_ahead_hits_total{fs="l",mount="/m"} NaN',
    b'lustre_llite_statahead_started_total{fs="l",mount="',
    b'lustre_osc_pages_per_rpc_bucket{fs="l",mount="/m",direction="read",le="many"} 3',
    b'lustre_osc_pages_per_rpc_bucket{fs="l",mount="/m",direction="read",le="-Inf"} 3'])
def test_an_impossible_sample_of_a_client_makes_its_exposition_invalid(line: bytes) -> None:
    with pytest.raises(SourceError, match="n17"):
        nodes.parse_mounts(line + b"\n", "http://n17:9169/metrics")


def made(hits: float, **tables: dict[int, float]) -> ClientLoad:
    rpcs = tuple(RpcLoad("osc", "hdd", name, table, {}, 8.0, 1024.0) for name, table in tables.items())
    return ClientLoad("n1", "/m", "lustre", 0.0, 0.0, {"hits": hits}, rpcs=rpcs, fabric_driver={"krcvqs": 2})


def test_two_readings_make_a_load() -> None:
    load = client_load(made(100, write={1: 5, 8: 10}), made(150, write={1: 5, 8: 30}), 60.0, 30.0)
    assert load is not None
    assert (load.read_ahead, load.seconds, load.fabric_driver) == ({"hits": 50}, 30.0, {"krcvqs": 2})
    (rpcs,) = load.rpcs
    assert (dict(rpcs.in_flight), rpcs.rpcs, rpcs.max_in_flight) == ({8: 20}, 20, 8)


@pytest.mark.parametrize(("before", "after"), [
    (made(100), made(50)), (made(1, write={8: 10}), made(1, write={8: 9})), (made(1, write={8: 10}), made(1))])
def test_a_mount_whose_counters_fell_has_no_load(before: ClientLoad, after: ClientLoad) -> None:
    assert client_load(before, after, 60.0, 30.0) is None


def test_clients_take_turns_and_what_is_known_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "NODES_PER_CALL", 2)
    clock, requested = SettableClock(), []

    def look_at(name: str) -> Callable[[object], dict[str, ClientLoad]]:
        def look(_: object) -> dict[str, ClientLoad]:
            requested.append(name)
            return {"/m": replace(made(clock.at), client=name)}
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

    def look(_: object) -> dict[str, ClientLoad]:
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
    turns = ClientPoller({"sim": mounts_of_node(Tree(Roots.of(tmp_path / "proc", tmp_path / "sys")))}, clock)
    loads: tuple[ClientLoad, ...] = ()
    for _ in range(2):
        cluster.advance(30)
        clock.at += 30
        write_parameters(cluster, tmp_path, clients=True)
        loads = turns(POOLS)
    rpcs = {of: each for load in loads for of, each in rpcs_of(load).items() if each.rpcs}
    written = rpcs["osc", "hdd", "write"]
    assert written.rpcs > 100
    assert written.max_in_flight == 8
    assert sum(pages * count for pages, count in written.pages.items()) * 4096 == pytest.approx(30 * 66e6, rel=0.2)
    assert ("osc", "flash", "write") not in rpcs
