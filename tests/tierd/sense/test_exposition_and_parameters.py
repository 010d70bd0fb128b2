"""What tierd reads in the parameter files of a node, also broken ones, is what its exporter's exposition says."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lustre.parameters import Roots, Tree
from tests.conftest import Unpack
from tests.exporter.test_golden import GOLDEN
from tests.exporter.written import unfold
from tests.tierd.sense import expositions
from tierd.model import ClientLoad
from tierd.sense import nodes, parameters

URL = "http://n17:9169/metrics"
POOLS = {"work-OST0000": "flash"} | {f"lustre-OST000{n}": "flash" if n < 2 else "hdd" for n in range(6)}


@dataclass(frozen=True)
class Node:
    tree: Tree
    exposition: bytes


@pytest.fixture
def node(request: pytest.FixtureRequest, capture: Unpack, tmp_path: Path) -> Node:
    """A recorded node by name, or a written one by release and role."""
    if isinstance(request.param, str):
        root, name = capture(f"2.17.57/{request.param}"), f"2.17.57-{request.param}"
    else:
        release, role = request.param
        root, name = unfold(release, role, tmp_path / "node"), f"written-{release}-{role}"
    return Node(Tree(Roots.of(root / "proc", root / "sys")), (GOLDEN / f"{name}.prom").read_bytes())


def of_nodes(*names: str | tuple[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("node", names, ids=str, indirect=True)


RECORDED = "tree-idle", "tree-load-1", "tree-load-2"
SERVERS = *RECORDED, ("2.12", "mds"), ("2.16", "mds"), ("2.16", "oss"), ("2.16", "oss-zfs")


def used(numbers: Mapping[str, float] | Mapping[int, float]) -> dict[object, int]:
    return {name: round(number) for name, number in numbers.items() if number}


@of_nodes(*SERVERS)
def test_counters_and_states_of_a_server(node: Node) -> None:
    near, far = parameters.reading(node.tree, 0.0), expositions.reading([node.exposition], 0.0)
    busy = {key: entry for key, entry in near.jobs.items() if any(entry.samples.values())}
    assert [*far.services.values()] == [*near.services.values()]
    assert replace(far, jobs={}, services={}, complete=near.targets) == replace(near, jobs={}, services={})
    assert far.jobs.keys() == busy.keys()
    for key, entry in busy.items():
        assert [used(far.jobs[key].samples), used(far.jobs[key].sums), used(far.jobs[key].sizes)] == [
            used(entry.samples), used(entry.sums), used(entry.sizes)]


@of_nodes(*SERVERS)
def test_disks_of_a_server(node: Node) -> None:
    found = nodes.read_disks(node.tree)
    assert nodes.parse_disks(node.exposition, URL) == found
    assert all("-OST" in target for target in found)


@of_nodes(*RECORDED, ("2.12", "client"), ("2.16", "client"))
def test_mounts_of_a_client(node: Node) -> None:
    def of(mounts: Mapping[str, nodes.Counters]) -> tuple[ClientLoad, object]:
        (load,) = nodes.client_loads(nodes.Turn(URL, dict.fromkeys(mounts, nodes.Counters()), mounts, 9.0, 9.0))
        rpcs = {(each.kind, each.pool, each.direction): each for each in load.rpcs if each.rpcs}
        return replace(load, mount="", rpcs=()), rpcs

    far = of(nodes.parse_mounts(node.exposition, URL))
    assert far[0].client == "n17"
    assert far == of(nodes.read_mounts(node.tree, POOLS))


def tree(root: Path, **files: bytes) -> Tree:
    for name, content in files.items():
        path = root / "proc/fs/lustre/obdfilter" / name.replace("__", "/").replace("_OST", "-OST")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Tree(Roots.of(root / "proc", root / "sys"))


def test_pools_and_room_of_a_real_server(capture: Unpack) -> None:
    root = capture("2.17.57/tree-idle")
    room = parameters.pool_capacity(Tree(Roots.of(root / "proc", root / "sys")))
    assert room.pools["flash"] == ("lustre-OST0000", "lustre-OST0001")
    assert 0 < room.avail_bytes["flash"] < room.size_bytes["flash"]


@pytest.mark.parametrize("data", [b"", b"\x00\xff" * 500, "cut", b"job_stats:\n"])
def test_a_broken_file_loses_nothing_else(capture: Unpack, tmp_path: Path, data: bytes | str) -> None:
    whole = (capture("2.17.57/tree-load-1") / "proc/fs/lustre/obdfilter/lustre-OST0000/job_stats").read_bytes()
    alone = parameters.reading(tree(tmp_path, lustre_OST0000__job_stats=whole), 0.0).jobs
    broken = whole[:300] if isinstance(data, str) else data
    seen = parameters.reading(tree(tmp_path, lustre_OST0001__job_stats=broken), 0.0).jobs
    assert len(alone) > 1
    assert {pair: entry for pair, entry in seen.items() if pair in alone} == alone


@pytest.mark.parametrize(("files", "condition"), [
    ({}, None), ({"recovery_status": b"status: INACTIVE\n"}, None), ({"kbytestotal": None}, None),
    ({"degraded": b"1\n"}, "degraded"), ({"recovery_status": None}, "recovery status unknown"),
    *(({"recovery_status": b"status: %b\n" % word}, "in recovery") for word in (b"RECOVERING", b"FROBNICATING")),
    ({"kbytesavail": b"4\n"}, "full")])
def test_conditions(tmp_path: Path, files: dict[str, bytes | None], condition: str | None) -> None:
    well = {"degraded": b"0\n", "recovery_status": b"status: COMPLETE\n",
            "kbytestotal": b"100\n", "kbytesavail": b"5\n"}
    found = {f"lustre_OST0000__{name}": text for name, text in (well | files).items() if text is not None}
    seen = parameters.reading(tree(tmp_path, lustre_OST0000__job_stats=b"job_stats:\n", **found), 0.0)
    assert seen.conditions.get("lustre-OST0000") == condition
