"""python -m scripts.page_pictures [--check] [--folder FOLDER]: pictures of tierd's page during the demonstration.

The scenario ``demo`` runs in virtual time with tierd at work on it, and a headless Chromium takes the pictures that the
documentation shows. Each picture has the digest of the templates, the style and the script in its metadata. ``--check``
compares these digests, so that a test notices pictures of an older build.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.scenarios.scenario import library
from simulator.settings import recorded_test_bed
from stack import demo
from tests.operation.browser import Browser
from tierd.act.movers.moves import PortMover
from tierd.daemon.node import Node
from tierd.daemon.page import HERE
from tierd.daemon.service import Service
from tierd.simulation.world import VirtualClock, parameter_files

ROOT = Path(__file__).parent.parent
KEY = b"tierd page"
"""Keyword of the text in a picture (PNG, section 11.3.4) that has the digest."""


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
    Picture("tierd-page.png", 44, "/", 1280, top=1240),
    Picture("tierd-page-dark.png", 82, "/", 1280, dark=True, top=1240),
    Picture("tierd-page-dry-run.png", 60, "/", 420, dry_run=True, top=1100),
    Picture("tierd-page-history.png", 82, "/history?job=mdt_small.1001", 1280, top=620),
)


def digest() -> bytes:
    """Digest of what the pages are made of."""
    files = sorted(path for folder in ("pages", "assets") for path in (HERE / folder).iterdir())
    return sha256(b"\0".join(path.name.encode() + b"\0" + path.read_bytes() for path in files)).hexdigest().encode()


def marked(png: bytes, text: bytes) -> bytes:
    """The picture with a text before its end."""
    body = b"tEXt" + KEY + b"\0" + text
    return png[:-12] + struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body)) + png[-12:]


def is_current(png: bytes) -> bool:
    """Whether a picture is of the present templates, style and script."""
    return b"tEXt" + KEY + b"\0" + digest() in png


@contextmanager
def demonstration(folder: Path, dry_run: bool) -> Iterator[tuple[Cluster, Service]]:
    """The cluster of ``make demo`` with tierd, in virtual time."""
    cluster = Cluster(recorded_test_bed(hdd_ios_per_second=demo.DISK_IOPS), library("demo").jobs)
    filesystem = SimulatedFilesystem(cluster)
    chosen = demo.settings()
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


def take(pictures: list[Picture], into: Path, browser: Browser, dry_run: bool) -> None:
    """Run the demonstration once and take these pictures, which are sorted by time."""
    into = into.absolute()
    with (tempfile.TemporaryDirectory() as folder, chdir(folder),
          demonstration(Path(folder), dry_run) as (cluster, service)):
        assert service.web is not None
        for picture in pictures:
            while cluster.now < picture.at_seconds:
                cluster.advance(demo.CYCLE_SECONDS)
                service.cycle()
            browser.screen(picture.width, 900, dark=picture.dark, scripts=False)
            browser.open(f"http://127.0.0.1:{service.web.port}{picture.path}")
            path = into / picture.name
            browser.picture(path, picture.top)
            path.write_bytes(marked(path.read_bytes(), digest()))
            print(path)


def main(arguments: list[str] | None = None) -> int:
    """Take all pictures, or check those that are there."""
    parser = argparse.ArgumentParser(prog="python -m scripts.page_pictures", description=__doc__)
    parser.add_argument("--check", action="store_true", help="report pictures of an older build; exit status 1 if any")
    parser.add_argument("--folder", type=Path, default=ROOT / "docs/pictures", help="where the pictures are")
    chosen = parser.parse_args(arguments)
    if chosen.check:
        old = [p.name for p in PICTURES if not is_current((chosen.folder / p.name).read_bytes())]
        print(f"older than the page: {', '.join(old)}" if old else "all pictures are of the present page")
        return 1 if old else 0
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        for dry_run in (False, True):
            several = sorted((p for p in PICTURES if p.dry_run is dry_run), key=lambda p: p.at_seconds)
            take(several, chosen.folder, browser, dry_run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
