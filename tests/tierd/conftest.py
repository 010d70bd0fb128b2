"""Fixtures for tests of tierd."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.logged import LISTENING
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import READ_AGAIN, Clearing, Site, acting, altered
from tests.tierd.tapes import UNPACKED


@pytest.fixture(scope="session", autouse=True)
def remove_unpacked_tapes() -> Iterator[None]:
    """Remove the temporary folders of tapes at the end."""
    with UNPACKED:
        yield


@pytest.fixture(autouse=True)
def stop_listening() -> Iterator[None]:
    """Close the lists of what tierd logs."""
    with LISTENING:
        yield


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    cluster = FluidCluster(recorded_test_bed(), (STREAM, NOISE))
    filesystem = Clearing(cluster)
    settings = acting(tmp_path, sense={"readers": {"MDT0000": "cl1"}}, web={"port": 0})
    made = Site(cluster, filesystem, settings, tmp_path)
    made.start()
    yield made
    made.service.close()


@pytest.fixture
def reading(site: Site) -> Site:
    """The site with a noisy job that reads its files again, of which most wait for their turn."""
    site.settings = altered(site.settings, limits={"files_per_second": 1.0})
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, READ_AGAIN)))
    site.run_until(lambda: site.service.gate.waiting >= 25, before=100)
    return site
