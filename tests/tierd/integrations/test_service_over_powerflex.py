"""tierd over OSTs on PowerFlex volumes: a rebuild is named, nobody is blamed, and the metrics are clean."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.servers import program
from tests.tierd.integrations.powerflex_gateway import PASSWORD, USER, PowerFlexStub, gateway, rate
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site, fetched
from tierd.integrations.powerflex.gateway import PowerFlexSettings


@pytest.fixture
def stub() -> Iterator[PowerFlexStub]:
    with gateway() as made:
        yield made


@pytest.fixture
def over_powerflex(site: Site, stub: PowerFlexStub, tmp_path: Path) -> Site:
    """The site, whose OSTs are all on volumes of one pool."""
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    password.chmod(0o600)
    targets = tuple(f"OST{number:04x}" for number in range(16))
    settings = PowerFlexSettings(stub.url, 4, USER, str(password), volumes={"ost0": targets})
    site.configure(powerflex=settings)
    return site


def begin(site: Site) -> None:
    """Start it, and wait until the gateway has answered once."""
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, NOISE)))
    while "tierd_powerflex_pool_size_bytes{" not in fetched(site, "/metrics")[1]:
        site.run(until=site.cluster.now + 5)
        assert site.cluster.now < 3600


def test_a_rebuild_is_named_and_nobody_is_blamed(over_powerflex: Site, stub: PowerFlexStub) -> None:
    stub.statistics(fwdRebuildWriteBwc=rate(800), pendingFwdRebuildCapacityInKb=300 << 20)
    begin(over_powerflex)
    over_powerflex.run_until_said("PowerFlex rebuilds its pool nvme at 839 MB/s; 300 GiB are left",
                                  before=over_powerflex.cluster.now + 200)
    over_powerflex.run(until=over_powerflex.cluster.now + 120)
    metrics = fetched(over_powerflex, "/metrics")[1]
    assert 'tierd_findings_total{fs="lustre",kind="noisy-neighbour"} 0.0' in metrics
    assert 'tierd_active_findings{fs="lustre",kind="storage-rebuild"} 1.0' in metrics
    assert 'tierd_powerflex_target_slowed{fs="lustre",target="OST0000",volume="ost0"} 1.0' in metrics


def test_without_a_rebuild_the_noisy_neighbour_is_found(over_powerflex: Site) -> None:
    begin(over_powerflex)
    over_powerflex.run_until_said("ior_stream.1002 streams at", before=over_powerflex.cluster.now + 200)


def test_promtool_accepts_the_metrics(over_powerflex: Site) -> None:
    begin(over_powerflex)
    metrics = fetched(over_powerflex, "/metrics")[1]
    checked = subprocess.run([program("promtool"), "check", "metrics"], input=metrics, text=True, capture_output=True,
                             check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert metrics.count("\ntierd_powerflex_") > 40
    page = (Path(__file__).parents[3] / "docs" / "powerflex.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^# TYPE (tierd_powerflex_\w+)", metrics, re.MULTILINE))
    assert shown == set(re.findall(r"^\| `(tierd_powerflex_\w+)` \|", page, re.MULTILINE))
