"""Counters of clients and disks: impossible ones, and two readings. See also test_exposition_and_parameters."""

from collections.abc import Callable, Mapping
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
from tierd.sense.nodes import ClientPoller, Counters, DiskPoller, Turn, client_loads, parse_disks

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


URL = "http://oss1:9169/metrics"


def disk_counters(driver: dict[str, int], **tables: dict[int, float]) -> Counters:
    found = Counters(settings={"max_rpc_bytes": 0, "fabric_driver": driver})
    for name, table in tables.items():
        found.add((name,), table)
    return found


@pytest.mark.parametrize("bound", ["soon", "NaN", "-Inf", "1e307"])
def test_an_impossible_bound_is_an_error_that_names_the_exporter(bound: str) -> None:
    line = f'lustre_osd_io_seconds_bucket{{fs="l",target="OST0001",direction="write",le="{bound}"}} 4\n'
    with pytest.raises(SourceError, match=r"oss1.*invalid data"):
        parse_disks(line.encode(), URL)


@pytest.mark.parametrize("value", ["+Inf", "NaN"])
@pytest.mark.parametrize("name", ["lustre_ost_max_rpc_bytes", "lustre_lnet_omni_path_parameter"])
def test_an_impossible_number_is_an_error(name: str, value: str) -> None:
    with pytest.raises(SourceError, match="invalid data"):
        parse_disks(f'{name}{{fs="l",target="OST0001",setting="krcvqs"}} {value}\n'.encode(), URL)


def test_writes_beyond_the_last_bucket_and_the_driver_of_a_server() -> None:
    lines = (b'lustre_osd_io_size_bytes_bucket{fs="l",target="OST1",direction="write",le="+Inf"} 10\n'
             b'lustre_osd_io_size_bytes_bucket{fs="l",target="OST1",direction="write",le="8192"} 3\n'
             b'lustre_lnet_omni_path_parameter{setting="krcvqs"} 2\n')
    assert parse_disks(lines, URL) == {"l-OST1": disk_counters({"krcvqs": 2}, write_sizes={8192: 3, 16384: 7})}


def test_differences_between_readings_and_what_is_known_of_a_server_while_it_answers() -> None:
    driver = {"krcvqs": 2}
    answers = [disk_counters(driver, write_sizes={4096: 10.0}, write_msec={1: 10.0}),
               disk_counters({}, write_sizes={4096: 15.0, 8192: 2.0}, write_msec={1: 15.0, 16: 2.0},
                             read_msec={128: 13.0}),
               disk_counters({}, write_sizes={4096: 1.0}), None, disk_counters({}, write_sizes={4096: 90.0}),
               disk_counters({}, write_sizes={4096: 93.0})]

    def read(_: object) -> Mapping[str, Counters]:
        answer = answers.pop(0)
        if answer is None:
            raise OSError("no route to host")
        return {"l-OST0001": answer}

    poller = DiskPoller({URL: read}, SettableClock(1000.0))
    (since_mount,) = poller()["l-OST0001"]
    assert (since_mount.sizes, since_mount.request_msec) == ({4096: 10.0}, 0.0), "ten requests are too few for a mean"
    assert poller.drivers == {"oss1": driver}
    one = poller()["l-OST0001"][-1]
    assert (one.sizes, one.msec, poller.drivers) == ({4096: 5.0, 8192: 2.0}, {1: 5.0, 16: 2.0}, {})
    assert one.request_msec == (5 * 1 + 2 * 16 + 13 * 128) / 20
    assert len(poller()["l-OST0001"]) == 2, "it was mounted again"
    poller()
    assert poller.faults == {URL: "no route to host"}
    assert len(poller()["l-OST0001"]) == 2, "what was done since the mount has been counted"
    assert poller()["l-OST0001"][-1].sizes == {4096: 3.0}
