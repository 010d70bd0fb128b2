"""python -m scripts.page_pictures: pictures of tierd's page during the demonstration.

The scenario ``demo`` runs in virtual time with tierd at work on it, and a headless Chromium takes the pictures that the
documentation shows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.scenarios.scenario import library
from simulator.settings import recorded_test_bed
from stack import demo
from tests.operation.browser import Browser
from tierd.act.movers.inspection import PortMover
from tierd.config.settings import Settings
from tierd.daemon.node import Node
from tierd.daemon.service import Service
from tierd.simulation.world import VirtualClock, parameter_files

FOLDER = Path(__file__).absolute().parent.parent / "docs" / "pictures"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: when, what, how wide, and in which colours."""

    name: str
    at_seconds: float
    path: str
    width: int
    dark: bool = False
    dry_run: bool = False
    top: int | None = None
    """Height of the part that is shown; None for the whole page."""


PICTURES = (
    Picture("tierd-page.png", 44, "/", 1280, top=1050),
    Picture("tierd-page-dark.png", 82, "/", 1280, dark=True, top=1050),
    Picture("tierd-page-dry-run.png", 60, "/", 420, dry_run=True, top=1100),
    Picture("tierd-page-history.png", 82, "/history?job=mdt_small.1001", 1280, top=620),
)


@contextmanager
def demonstration(folder: Path, dry_run: bool) -> Iterator[tuple[Cluster, Service]]:
    """The cluster of ``make demo`` with tierd, in virtual time."""
    cluster = Cluster(recorded_test_bed(hdd_ios_per_second=demo.DISK_IOPS), library("demo").jobs)
    filesystem = SimulatedFilesystem(cluster)
    chosen = demo.quick(Settings())
    act = replace(chosen.act, dry_run=dry_run, journal=f"{folder}/journal.sqlite", socket="tierd.sock",
                  pause_file=f"{folder}/pause")
    sense = replace(chosen.sense, cycle_seconds=demo.CYCLE_SECONDS)
    node = Node(filesystem=filesystem, mover=PortMover(filesystem), read=parameter_files(cluster, folder / "node"),
                mdts=[mdt.short_name for mdt in cluster.mdts], clock=VirtualClock(cluster), user_name=demo.user_name)
    service = Service(replace(chosen, act=act, sense=sense, web=replace(chosen.web, port=0)), node)
    try:
        yield cluster, service
    finally:
        service.close()


def take(pictures: list[Picture], browser: Browser, dry_run: bool) -> None:
    """Run the demonstration once and take these pictures, which are sorted by time."""
    with (tempfile.TemporaryDirectory() as folder, chdir(folder),
          demonstration(Path(folder), dry_run) as (cluster, service)):
        assert service.web is not None
        for picture in pictures:
            while cluster.now < picture.at_seconds:
                cluster.advance(demo.CYCLE_SECONDS)
                service.cycle()
            browser.screen(picture.width, 900, dark=picture.dark, scripts=False)
            browser.open(f"http://127.0.0.1:{service.web.port}{picture.path}")
            path = FOLDER / picture.name
            browser.picture(path, picture.top)
            make_small(path)
            print(path)


def make_small(picture: Path) -> None:
    """Keep 256 colours of a picture. Of fewer, small parts lose theirs: the red of an aggressor."""
    with Image.open(picture) as opened:
        opened.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(picture, optimize=True)


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        for dry_run in (False, True):
            several = sorted((p for p in PICTURES if p.dry_run is dry_run), key=lambda p: p.at_seconds)
            take(several, browser, dry_run)


if __name__ == "__main__":
    main()
