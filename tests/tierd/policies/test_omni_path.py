"""Advice about the Omni-Path driver: for nodes with traffic whose parameters differ, and none without the hardware."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.policies.views import halves, look
from tests.tierd.worlds import small_io
from tierd.advised import CLIENT_DRIVER, DRIVER_SETTINGS, SERVER_DRIVER
from tierd.model import ClientLoad, Facts, Finding, RpcLoad
from tierd.policies.omni_path import POLICY

NOW = 120.0
BUSY = RpcLoad("osc", "hdd", "write", {8: 3000.0})
TRAFFIC = halves(small_io("ior.1", 100.0, seconds=30.0))


def client(name: str, driver: Mapping[str, int], rpcs: float = 3000.0) -> ClientLoad:
    return ClientLoad(name, "/mnt/lustre", "lustre", NOW, 30.0, rpcs=(replace(BUSY, in_flight={8: rpcs}),),
                      fabric_driver=driver)


def found(*clients: ClientLoad, servers: Mapping[str, Mapping[str, int]] = {}, active: str = "",
          quiet: bool = False) -> list[Finding]:
    return look(POLICY, halves() if quiet else TRAFFIC, Facts(clients=clients, server_drivers=servers),
                active={("omni-path", "", active)} if active else ())


def test_clients_that_differ_are_named_once_with_a_command_for_each_parameter() -> None:
    other = {"krcvqs": 2, "cap_mask": 0x4C09A09CBBA}
    (finding,) = found(client("n1", other), client("n2", {**CLIENT_DRIVER, "krcvqs": 2}), client("n3", CLIENT_DRIVER))
    assert finding.sentence == (
        "the Omni-Path driver of clients has other parameters than Dell and Intel measured: cap_mask is 0x4c09a09cbba "
        "on 1 client (n1); krcvqs is 2 on 2 clients (n1, n2)")
    assert finding.advice_only
    assert [piece.command for piece in finding.advice] == [
        "echo 'options hfi1 cap_mask=0x4c09a01cbba' > /etc/modprobe.d/hfi1-cap_mask.conf, and load the driver again",
        "echo 'options hfi1 krcvqs=4' > /etc/modprobe.d/hfi1-krcvqs.conf, and load the driver again"]
    assert finding.advice[1].where == "on clients: n1, n2"
    assert finding.evidence.numbers() == {"nodes": 2, "parameters": 2}


def test_servers_have_other_values() -> None:
    (finding,) = found(servers={"oss1": {**SERVER_DRIVER, "piothreshold": 256}, "oss2": SERVER_DRIVER})
    assert finding.subject == "servers"
    assert "piothreshold is 256 on 1 server (oss1)" in finding.sentence


def test_values_of_the_paper_and_parameters_that_a_driver_lacks_are_not_reported() -> None:
    assert found(client("n1", CLIENT_DRIVER), client("n2", {"krcvqs": 4}), client("n3", {"sge_copy_mode": 0}),
                 client("n4", {}), servers={"oss1": SERVER_DRIVER, "oss2": {}}) == []


def test_nodes_without_traffic_are_left_out() -> None:
    idle = client("n1", {"krcvqs": 2}, rpcs=30.0)
    assert found(idle, servers={"oss1": {"krcvqs": 2}}, quiet=True) == []
    assert len(found(idle, active="clients")) == 1


def test_a_server_that_mounts_its_file_system_counts_as_a_server() -> None:
    (finding,) = found(client("oss1", SERVER_DRIVER), servers={"oss1": {**SERVER_DRIVER, "wss_threshold": 80}})
    assert finding.subject == "servers"


drivers = st.dictionaries(st.sampled_from([*DRIVER_SETTINGS, "other"]), st.integers(-5, 1 << 60), max_size=5)


@given(st.dictionaries(st.text(max_size=5), drivers, max_size=3), st.dictionaries(st.text(max_size=5), drivers,
                                                                                 max_size=3))
def test_a_finding_has_advice_for_each_parameter(of_clients: Mapping[str, Mapping[str, int]],
                                                 servers: Mapping[str, Mapping[str, int]]) -> None:
    for finding in found(*(client(name, driver) for name, driver in of_clients.items()), servers=servers):
        assert len(finding.advice) == finding.evidence.numbers()["parameters"] > 0
