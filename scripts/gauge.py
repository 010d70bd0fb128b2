"""``python -m scripts.gauge``: how large the project is, beside the size that was planned, and what it may have.

Lines are those of Python, with blank lines and docstrings. The way of a record is how many files of lustre/ and tierd/
run in a quiet cycle, and up to the first default layout that is set, in a simulated run. The program fails if something
is larger than it may be: docs/architecture.md says why that is more than was planned.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import CodeType, FrameType

from simulator.cluster import Cluster
from tierd.config.settings import Settings
from tierd.simulation.random_scenarios import USUAL, random_scenario
from tierd.simulation.run import run

ROOT = Path(__file__).parent.parent
ROOMS = (
    ("lustre", ("lustre",), 7_000, 7_000),
    ("httpserver", ("httpserver",), 1_200, 1_200),
    ("exporter", ("exporter",), 8_500, 8_150),
    ("tierd: model, config", ("tierd/*.py", "tierd/config"), 2_300, 4_320),
    ("tierd: sense", ("tierd/sense",), 5_500, 7_157),
    ("tierd: detect, decide, verify, policies",
     ("tierd/detect", "tierd/decide", "tierd/verify", "tierd/policies"), 6_000, 7_473),
    ("tierd: act", ("tierd/act",), 6_000, 7_523),
    ("tierd: daemon, cli", ("tierd/daemon", "tierd/cli"), 7_500, 9_491),
    ("tierd: cluster", ("tierd/cluster",), 3_000, 3_000),
    ("tierd: other", ("tierd",), 4_500, 5_770),
    ("simulator", ("simulator",), 8_500, 8_464),
    ("stack, dashboards, bench", ("stack", "dashboards", "bench"), 5_000, 4_759),
)
"""Rooms, their folders, the lines that were planned, and those they may have. Of a file in two rooms, the first counts
it."""
QUIET_SECONDS = 30.0, 40.0
"""Virtual seconds between which nothing happens: neighbours of random scenarios come after 45 s."""


def lines(paths: Collection[Path]) -> int:
    """Lines of these files."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def files(place: str, suffix: str = "py") -> set[Path]:
    """The files below a folder, or those that a pattern names."""
    return set(ROOT.glob(place if "*" in place else f"{place}/**/*.{suffix}"))


def words(path: Path) -> int:
    """Words of a page."""
    return len(path.read_text(encoding="utf-8").split())


def settings_of(table: object) -> int:
    """Settings in a table and the tables in it."""
    if not is_dataclass(table):
        return 1
    return sum(settings_of(getattr(table, each.name)) for each in fields(table) if each.init)


def options() -> int:
    """Options of the exporter's command line."""
    return len(set(re.findall(r'"(--[a-z][\w.-]+)"', "".join(
        path.read_text(encoding="utf-8") for path in files("exporter")))))


def files_of(codes: Collection[CodeType]) -> int:
    """How many files of lustre/ and tierd/ have one of these functions, without the simulation."""
    names = {code.co_filename for code in list(codes)}  # threads add to it
    return sum(name.startswith((f"{ROOT}/lustre/", f"{ROOT}/tierd/")) and "/tierd/simulation/" not in name
               for name in names)


def way_of_a_record() -> tuple[int, int]:
    """Files that run in a quiet cycle, and from the start of tierd up to the first act."""
    scenario = next(each for seed in range(1, 100) if (each := random_scenario(seed, USUAL)).suspects)
    quiet, whole, found = set[CodeType](), set[CodeType](), [0]

    def saw(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            quiet.add(frame.f_code)
            whole.add(frame.f_code)

    def progress(now: float) -> None:
        if now <= QUIET_SECONDS[0]:
            quiet.clear()
        elif not found[0] and now >= QUIET_SECONDS[1]:
            found[0] = files_of(quiet)

    threading.setprofile(saw)
    sys.setprofile(saw)
    try:
        run(Cluster(scenario.cluster(1), scenario.jobs), scenario.jobs, scenario.noise_starts + 45, policy=Settings(),
            progress=progress)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found[0], files_of(whole)


def rows() -> Iterator[tuple[str, int, int, int]]:
    """What is measured, how much it is, how much was planned, and how much it may be."""
    counted: set[Path] = set()
    for room, places, planned, most in ROOMS:
        here = set[Path]().union(*map(files, places)) - counted
        counted |= here
        yield room, lines(here), planned, most
    yield "all product Python", lines(counted), 65_000, 74_275
    yield "C", sum(lines(files(room, "c")) for room in ("exporter", "lustre", "tierd")), 2_500, 2_500
    yield "tests", lines(files("tests")), 42_000, 52_038
    every = Settings()
    policies = sum(settings_of(each.settings) for each in every.policies)
    yield "settings of tierd, options of the exporter", settings_of(every) + policies + options(), 200, 200
    pages = {ROOT / "README.md", *ROOT.glob("docs/*.md")} - {ROOT / "docs/metrics.md"}
    yield "words of docs and README, without metrics.md", sum(map(words, pages)), 40_000, 40_000
    quiet, acted = way_of_a_record()
    yield "files that run in a quiet cycle", quiet, 40, 84
    yield "files that run up to the first act", acted, 70, 115


def main() -> int:
    """Print the table. Returns 1 if something is larger than it may be."""
    grown = False
    sys.stdout.write(f"{'':45} {'is':>7} {'planned':>8} {'at most':>8}\n")
    for what, count, planned, most in rows():
        sys.stdout.write(f"{what:45} {count:7,} {planned:8,} {most:8,}{'  too much' if count > most else ''}\n")
        grown |= count > most
    return int(grown)


if __name__ == "__main__":
    sys.exit(main())
