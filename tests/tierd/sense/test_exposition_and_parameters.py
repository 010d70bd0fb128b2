"""What tierd reads in the parameter files of a node is what it reads in the exposition of the node's exporter."""

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
