"""The PowerFlex gateway: a stub that answers as the public API says, with good and hostile answers.

The last tests run tierd with OSTs on the gateway's volumes. It reports a rebuild, blames no job, and has valid metrics.
"""

import json
import re
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest

from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.pki import Pki
from tests.servers import program
from tests.tierd.integrations.powerflex_gateway import (
    PASSWORD,
    USER,
    AtOnce,
    PowerFlexStub,
    answers,
    gateway,
    rate,
    sdc,
    sds,
)
from tests.tierd.sense.clocks import SettableClock
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site
from tierd.background import DaemonExecutor
from tierd.integrations.powerflex.gateway import (
    FIELDS,
    LOGIN_AGAIN_SECONDS,
    ErrorKind,
    Gateway,
    PowerFlexSettings,
    PowerFlexSystem,
    records,
    statistics,
    system_of,
)
from tierd.integrations.powerflex.gateway import validated as checked
from tierd.integrations.powerflex.source import REBALANCE, REBUILD, UNKNOWN, PowerFlex
from tierd.model import StorageWork
from tierd.sense.http_client import SourceError
from tierd.sense.readings import Reading, window

NOW = 1_795_000_000.0
MIB = 1 << 20
OF_POOL = {"ost0": ("OST0000", "OST0001"), "ost2": ("OST0002",)}


@pytest.fixture(params=[3, 4])
def stub(request: pytest.FixtureRequest) -> Iterator[PowerFlexStub]:
    with gateway(request.param) as made:
        yield made


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    path.chmod(0o600)
    return path


def source(stub: PowerFlexStub, password: Path, clock: SettableClock, executor: Executor | None = None,
           **more: Any) -> PowerFlex:
    release: Any = stub.release
    made = replace(PowerFlexSettings(stub.url, release, USER, str(password), volumes=OF_POOL), **more)
    return PowerFlex(made, "lustre", Gateway(made, clock.now), clock, executor or AtOnce())


def refreshed(*arguments: Any, **more: Any) -> PowerFlex:
    made = source(*arguments, **more)
    made.refresh()
    return made


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(NOW)


def after(powerflex: PowerFlex, clock: SettableClock, seconds: float = 31.0) -> None:
    clock.at += seconds
    powerflex.refresh()


def metrics_of(powerflex: PowerFlex) -> dict[str, float]:
    return {f"{sample.name.removeprefix('tierd_powerflex_')} {' '.join(sample.labels.values())}".strip(): sample.value
            for family in powerflex.metrics() for sample in family.samples}


def test_a_quiet_system(stub, password, clock) -> None:
    powerflex = refreshed(stub, password, clock)
    shown = metrics_of(powerflex)
    assert (shown["mdm_cluster_info ClusteredNormal"], shown["mdm_good_nodes"], shown["mdm_good_replicas"]) == (1, 3, 2)
    assert shown["volume_size_bytes ost0 nvme"] == 4 << 40
    assert shown["volume_read_bytes_per_second ost0 nvme"] == 100 * MIB
    assert "volume_read_bytes_per_second ost1 nvme" not in shown, "the gateway shows no statistics of it"
    assert shown["sdc_connected 10.0.1.1"] == 1, "a client without a name"
    assert shown["devices Normal"] == 2
    assert powerflex.system.whole.name == "hpc"
    assert powerflex.storage_work() == {}
    assert stub.logins == 1


@pytest.mark.parametrize(("shown", "kind", "speed", "pending"), [
    ({"fwdRebuildWriteBwc": rate(200), "pendingFwdRebuildCapacityInKb": 7 << 20}, REBUILD, 200 * MIB, 7 << 30),
    ({"activeBckRebuildCapacityInKb": 1}, REBUILD, 0.0, 0),
    ({"rebalanceWriteBwc": rate(100), "pendingRebalanceCapacityInKb": 1 << 20}, REBALANCE, 100 * MIB, 1 << 30),
    ({"rebalanceWriteBwc": rate(10)}, None, 0.0, 0),
])
def test_a_rebuild_slows_the_targets_on_volumes_of_its_pool(
        stub, password, clock, shown: dict[str, Any], kind: str | None, speed: float, pending: int) -> None:
    stub.statistics(**shown)
    powerflex = refreshed(stub, password, clock)
    work = StorageWork(kind or "", "nvme", speed, pending, "PowerFlex", "scli --query_all")
    assert powerflex.storage_work() == ({"lustre-OST0000": work, "lustre-OST0001": work} if kind else {})


def test_names_and_numbers_that_no_system_has_stop_nothing(stub, password, clock) -> None:
    stub.known["Volume"][0]["name"] = "\ud800ost0"  # json.dumps writes the escape
    stub.known["Sds"][0]["name"] = "oss\ud800"
    stub.statistics(fwdRebuildWriteBwc={"numSeconds": 1, "totalWeightInKb": 10**400}, maxCapacityInKb=10**400)
    powerflex = refreshed(stub, password, clock)
    assert "pool_size_bytes nvme" not in metrics_of(powerflex)
    shown = generate_latest(SimpleNamespace(collect=powerflex.metrics))
    assert b"?ost0" in shown
    assert b'"oss?"' in shown


@pytest.mark.parametrize("token", ["\u4e2d", "a\nb", "", 7])
def test_a_token_that_no_header_can_hold_is_an_answer_of_another_form(stub, password, clock, token: object) -> None:
    form = token if stub.release == 3 else {"access_token": token}
    stub.bad["/api/login" if stub.release == 3 else "/rest/auth/login"] = (200, json.dumps(form).encode())
    powerflex = refreshed(stub, password, clock)
    assert powerflex.gateway.errors[ErrorKind.ANSWER] == 1
    assert powerflex.system is None


def test_targets_of_a_rebuilding_pool_are_marked_unhealthy(stub, password, clock) -> None:
    stub.statistics(fwdRebuildWriteBwc=rate(200))
    powerflex = refreshed(stub, password, clock)
    targets = frozenset({"lustre-OST0000", "lustre-OST0001", "lustre-OST0002"})
    reading = Reading(NOW, {}, targets, {"lustre-OST0001": "degraded", "lustre-OST0002": "full"})
    noted = powerflex.noted(reading)
    assert noted.conditions == {"lustre-OST0000": "PowerFlex rebuild", "lustre-OST0001": "degraded",
                                "lustre-OST0002": "full"}
    seen = window(reading, replace(noted, time=NOW + 5))
    assert seen.conditions == noted.conditions
    assert set(seen.storage_work) == {"lustre-OST0000", "lustre-OST0001"}


def test_an_expired_token_is_renewed_once(stub, password, clock) -> None:
    powerflex = refreshed(stub, password, clock)
    stub.tokens.clear()
    after(powerflex, clock)
    assert (stub.logins, powerflex.age.problem) == (2, "")
    assert not powerflex.gateway.errors


def test_a_gateway_that_refuses_every_token_is_not_asked_forever(stub, password, clock) -> None:
    stub.bad["/api/types/Volume/instances"] = (401, b"{}")
    powerflex = refreshed(stub, password, clock)
    assert powerflex.gateway.errors == {ErrorKind.LOGIN: 1}
    assert stub.asked["/api/types/Volume/instances"] == 2
    assert "401" in powerflex.age.problem


def test_a_refused_password_is_retried_late_so_that_the_account_is_not_locked(stub, password, clock) -> None:
    stub.password = "changed"
    powerflex = source(stub, password, clock)
    for _ in range(5):
        after(powerflex, clock)
    assert stub.logins == 1
    assert powerflex.gateway.errors == {ErrorKind.LOGIN: 5}
    stub.password = PASSWORD
    after(powerflex, clock, LOGIN_AGAIN_SECONDS)
    assert (stub.logins, powerflex.age.problem) == (2, "")


@pytest.mark.parametrize(("status", "body", "kind"), [
    (500, b'{"message":"Internal","httpStatusCode":500}', ErrorKind.STATUS),
    (200, b'[{"id": "1", "na', ErrorKind.ANSWER),
    (200, b'{"message": "no list"}', ErrorKind.ANSWER),
    (200, b"[1]", ErrorKind.ANSWER),
    (200, b"<html>log in</html>", ErrorKind.ANSWER),
    (200, b"[" * 100_000, ErrorKind.ANSWER),
    (302, b"", ErrorKind.CONNECTION),
])
def test_a_bad_answer_is_counted_and_the_last_good_one_counts_until_it_is_old(
        stub, password, clock, status: int, body: bytes, kind: ErrorKind) -> None:
    powerflex = refreshed(stub, password, clock)
    stub.bad["/api/types/StoragePool/instances"] = (status, body)
    after(powerflex, clock)
    assert powerflex.gateway.errors == {kind: 1}
    assert powerflex.age.stale
    assert powerflex.storage_work() == {}
    clock.at += powerflex.settings.stale_seconds
    unknown = {target: work.kind for target, work in powerflex.storage_work().items()}
    assert unknown == dict.fromkeys(("lustre-OST0000", "lustre-OST0001", "lustre-OST0002"), UNKNOWN)
    stub.bad.clear()
    after(powerflex, clock)
    assert not powerflex.age.stale
    assert powerflex.storage_work() == {}


def test_a_rebuild_slows_the_volumes_of_its_pool_and_of_no_other_pool_with_this_name(stub, password, clock) -> None:
    """Names of pools are unique in a protection domain only."""
    first, second = stub.known["StoragePool"]
    second["name"] = first["name"]
    stub.known["statistics"]["StoragePool"][second["id"]]["activeFwdRebuildCapacityInKb"] = 1 << 20
    work = refreshed(stub, password, clock).storage_work()
    assert {target: one.pool for target, one in work.items()} == {"lustre-OST0002": "nvme (e0d8f6c900000001)"}


def test_a_slow_gateway_delays_no_cycle(stub, password, clock) -> None:
    stub.wait = threading.Event()
    powerflex = refreshed(stub, password, clock, DaemonExecutor("powerflex", 1))
    after(powerflex, clock)
    assert powerflex.system is None
    assert powerflex.storage_work()["lustre-OST0000"].kind == UNKNOWN
    assert stub.asked.total() <= 1, "one request at a time"


def test_an_answer_that_takes_too_long_is_an_error(stub, password, clock) -> None:
    stub.wait = threading.Event()
    powerflex = refreshed(stub, password, clock, timeout_seconds=0.2)
    assert powerflex.gateway.errors.total() == 1
    assert "0.2 s" in powerflex.age.problem or "timed out" in powerflex.age.problem


def test_a_gateway_of_the_other_release_is_named(password, clock) -> None:
    with gateway(3) as stub:
        powerflex = refreshed(stub, password, clock, release=4)
    assert "404" in powerflex.age.problem
    assert powerflex.gateway.errors == {ErrorKind.LOGIN: 1}


def test_a_volume_that_does_not_exist_is_named_and_unknown(stub, password, clock) -> None:
    powerflex = refreshed(stub, password, clock, volumes={"ost9": ("OST0009",)})
    assert powerflex.storage_work()["lustre-OST0009"].kind == UNKNOWN
    assert "ost9" in powerflex.age.note


def test_settings_and_states_of_servers_and_clients(stub, password, clock) -> None:
    stub.known["Sds"] = [sds(1, mdmConnectionState="Disconnected", perfProfile="Compact"),
                         sds(2, maintenanceState="InMaintenance", sdsNumberOsThreads=12)]
    stub.known["Sdc"] = [sdc(1, sdcMaxInflightRequests="200"), {}, {"id": "1", "mdmConnectionState": None}]
    shown = metrics_of(refreshed(stub, password, clock))
    assert (shown["sds_connected oss1"], shown["sds_info oss1 Compact"], shown["sds_in_maintenance oss2"]) == (0, 1, 1)
    assert {name: value for name, value in shown.items() if "_setting" in name} == {
        "sds_setting oss2 sds_number_os_threads": 12, "sdc_setting 10.0.1.1 sdc_max_inflight_requests": 200}
    assert [name for name in shown if name.startswith("sdc_connected")] == ["sdc_connected 10.0.1.1"]


@pytest.mark.parametrize(("more", "words"), [
    ({"url": "http://gateway"}, "https"), ({"url": "gateway"}, "whole address"), ({"user": ""}, "user"),
    ({"password_file": ""}, "password_file"), ({"volumes": {"a": ("MDT0000",)}}, "OST0000"),
    ({"volumes": {"a": ("OST0000",), "b": ("OST0000",)}}, "one volume"),
])
def test_settings_that_cannot_work_are_refused(more: dict[str, Any], words: str) -> None:
    good = PowerFlexSettings("https://gateway", 4, USER, "/etc/tierd/password", volumes=OF_POOL)
    assert checked(good) is good
    with pytest.raises(ValueError, match=words):
        checked(replace(good, **more))


def test_the_certificate_of_the_gateway_is_verified(authority: Pki, password: Path, clock: SettableClock) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.path("server.crt"), authority.path("server.key"))
    with gateway(4, tls) as stub:
        trusting = refreshed(stub, password, clock, ca_file=str(authority.path("ca.crt")))
        assert trusting.age.problem == ""
        for ca_file in ("", str(authority.path("stranger.crt"))):
            doubting = refreshed(stub, password, clock, ca_file=ca_file)
            assert "TLS" in doubting.age.problem
            assert doubting.gateway.errors == {ErrorKind.CONNECTION: 1}


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["id", "name", "mdmCluster", "storagePoolId", "sizeInKb", "fwdRebuildWriteBwc", "numSeconds",
                         "totalWeightInKb", "StoragePool", "Volume", "e0d8f6c900000000"]) | st.text(max_size=3),
        inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["System", "StoragePool", "Volume", "Sds", "Sdc", "Device"]), json_values,
                       max_size=6), json_values)
def test_any_json_is_a_system_or_an_error(instances: dict[str, Any], numbers: Any) -> None:
    known = answers() | instances
    try:
        listed = {kind: records(json.dumps(known[kind]).encode(), kind) for kind in known if kind != "statistics"}
        system = system_of(listed, statistics(json.dumps(numbers).encode()))
    except SourceError:
        return
    assert isinstance(system, PowerFlexSystem)
    speeds = [pool.bytes_per_second(rate) for pool in system.of("StoragePool") for rate, *_ in FIELDS.values()]
    assert all((speed or 0) >= 0 for speed in speeds)


@pytest.fixture
def newer() -> Iterator[PowerFlexStub]:
    with gateway() as made:
        yield made


@pytest.fixture
def over_powerflex(site: Site, newer: PowerFlexStub, password: Path) -> Site:
    """The site, whose OSTs are all on volumes of one pool."""
    targets = tuple(f"OST{number:04x}" for number in range(16))
    settings = PowerFlexSettings(newer.url, 4, USER, str(password), volumes={"ost0": targets})
    site.configure(powerflex=settings)
    return site


def begin(site: Site) -> None:
    """Start it, and wait until the gateway has answered once."""
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, NOISE)))
    site.run_until(lambda: "tierd_powerflex_pool_size_bytes{" in site.fetched("/metrics")[1], before=3600)


def test_a_rebuild_is_named_and_nobody_is_blamed(over_powerflex: Site, newer: PowerFlexStub) -> None:
    newer.statistics(fwdRebuildWriteBwc=rate(800), pendingFwdRebuildCapacityInKb=300 << 20)
    begin(over_powerflex)
    over_powerflex.run_until_said("PowerFlex rebuilds its pool nvme at 839 MB/s; 300 GiB are left",
                                  before=over_powerflex.cluster.now + 200)
    over_powerflex.run(until=over_powerflex.cluster.now + 120)
    metrics = over_powerflex.fetched("/metrics")[1]
    assert 'tierd_findings_total{fs="lustre",kind="noisy-neighbour"} 0.0' in metrics
    assert 'tierd_active_findings{fs="lustre",kind="storage-rebuild"} 1.0' in metrics
    assert 'tierd_powerflex_target_slowed{fs="lustre",target="OST0000",volume="ost0"} 1.0' in metrics


def test_without_a_rebuild_the_noisy_neighbour_is_found_and_promtool_accepts_the_metrics(over_powerflex: Site) -> None:
    begin(over_powerflex)
    over_powerflex.run_until_said("ior_stream.1002 streams at", before=over_powerflex.cluster.now + 200)
    metrics = over_powerflex.fetched("/metrics")[1]
    checked = subprocess.run([program("promtool"), "check", "metrics"], input=metrics, text=True, capture_output=True,
                             check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert metrics.count("\ntierd_powerflex_") > 40
    page = (Path(__file__).parents[3] / "docs" / "powerflex.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^# TYPE (tierd_powerflex_\w+)", metrics, re.MULTILINE))
    assert shown == set(re.findall(r"^\| `(tierd_powerflex_\w+)` \|", page, re.MULTILINE))
