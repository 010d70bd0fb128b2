"""A changelog that is cut off while tierd runs: reported within two cycles, and no act starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.fid import Fid
from simulator.filesystem import SimulatedFilesystem
from simulator.fluid.cluster import FluidCluster
from simulator.scenarios.events import Event, schedule
from simulator.settings import recorded_test_bed
from tests.tierd.logged import logged
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site, shown
from tierd.act.claim import Claim, ClaimFolder
from tierd.act.movers.moves import PortMover
from tierd.config.settings import Settings
from tierd.daemon.node import Node
from tierd.daemon.service import Service
from tierd.sense.readings import Reading
from tierd.simulation.world import VirtualClock, parameter_files

CYCLE = 5.0


class Client:
    """tierd on a client that is not the MDS, with exporters that show no changelogs."""

    def __init__(self, folder: Path, reader: str, dry_run: bool = False,
                 hide: Callable[[Reading], Reading] = lambda reading: replace(reading, changelogs={})) -> None:
        self.cluster = FluidCluster(recorded_test_bed(), (STREAM, NOISE))
        self.said = logged()
        filesystem, settings = SimulatedFilesystem(self.cluster), Settings()
        self.settings = replace(
            settings, act=replace(settings.act, dry_run=dry_run, journal=str(folder / "j.sqlite"), pause_file="",
                                  socket=str(folder / "s.sock")),
            sense=replace(settings.sense, readers={"MDT0000": reader} if reader else {}),
            web=replace(settings.web, enabled=False))
        read = parameter_files(self.cluster, folder / "node")
        claim = Claim(ClaimFolder(folder / ".tierd"), "host=a", lambda: self.cluster.now, settings.claim)
        self.marked: list[str] = []

        def mark(mdt: str) -> Fid:
            self.marked.append(mdt)
            return filesystem.mark(mdt)

        self.service = Service(self.settings, Node(
            filesystem=filesystem, mover=PortMover(filesystem), read=lambda: hide(read()), mdts=["MDT0000"],
            clock=VirtualClock(self.cluster), clear_changelog=filesystem.clear_changelog, claim=claim, mark=mark))

    @property
    def socket(self) -> str:
        return self.settings.act.socket

    def run(self, until: float) -> None:
        while self.cluster.now < until:
            self.cluster.advance(CYCLE)
            self.service.cycle()


@pytest.mark.parametrize("reader", ["cl1", ""], ids=["cleared", "marked"])
def test_on_a_client_it_is_known_by_clearing_or_by_a_mark(tmp_path: Path, reader: str,
                                                          capsys: pytest.CaptureFixture[str]) -> None:
    at = Client(tmp_path, reader)
    schedule([Event(22, "changelog_deregistered", {"target": "MDT0000"})], at.cluster)
    at.run(20)
    assert not [words for words in at.said if "changelog" in words]
    at.run(22 + 3 * CYCLE)
    (said,) = [words for words in at.said if words.startswith("changelog of MDT0000: ")]
    assert "lctl --device lustre-MDT0000 changelog_register" in said
    assert "begins nothing new" in said
    status = shown(capsys, "status", site=at)  # type: ignore[arg-type] # only its socket is asked for
    assert "source changelog: " in status
    assert "lctl --device lustre-MDT0000 changelog_register" in status
    at.run(90)
    assert not [entry for entry in at.service.journal.entries() if entry.outcome == "done"]
    at.service.close()


def test_in_a_dry_run_nothing_is_written_and_the_status_says_what_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = Client(tmp_path, "", dry_run=True)
    schedule([Event(12, "changelog_deregistered", {"target": "MDT0000"})], at.cluster)
    at.run(25)
    assert at.marked == []
    assert "whether MDT0000 still records is not known" in shown(
        capsys, "status", site=at)  # type: ignore[arg-type] # only its socket is asked for
    at.service.close()


def test_on_the_mds_a_dry_run_knows_it_too(tmp_path: Path) -> None:
    at = Client(tmp_path, "cl1", dry_run=True, hide=lambda reading: reading)
    schedule([Event(22, "changelog_deregistered", {"target": "MDT0000"})], at.cluster)
    at.run(22 + 2 * CYCLE)
    assert any("its user cl1 is not registered" in words for words in at.said)
    at.service.close()


def test_beside_another_user_it_is_known_though_records_flow(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    schedule([Event(21, "changelog_registered", {"target": "MDT0000"}),
              Event(22, "changelog_deregistered", {"target": "MDT0000"})], site.cluster)
    site.run(22 + 2 * CYCLE)
    assert "its user cl1 is not registered" in shown(capsys, "status", site=site)


def test_a_mask_without_closes_is_said_with_the_command(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    schedule([Event(22, "changelog_mask", {"target": "MDT0000", "without": "CLOSE"})], site.cluster)
    site.run(22 + 2 * CYCLE)
    status = shown(capsys, "status", site=site)
    assert "its mask leaves out CLOSE: " in status
    assert "lctl set_param -P mdd.lustre-MDT0000.changelog_mask='+CREAT" in status
