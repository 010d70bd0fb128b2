"""``python -m scripts.gauge``: how large the project is, beside the size that it should have.

Lines are those of Python, with blank lines and docstrings. The way of a record is how many files of lustre/ and tierd/
run in a quiet cycle, and up to the first default layout that is set, in a simulated run.
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
    ("lustre", ("lustre",), 7_000),
    ("httpserver", ("httpserver",), 1_200),
    ("exporter", ("exporter",), 8_500),
    ("tierd: model, config", ("tierd/*.py", "tierd/config"), 2_300),
    ("tierd: sense", ("tierd/sense",), 5_500),
    ("tierd: detect, decide, verify, policies",
     ("tierd/detect", "tierd/decide", "tierd/verify", "tierd/policies"), 6_000),
    ("tierd: act", ("tierd/act",), 6_000),
    ("tierd: daemon, cli", ("tierd/daemon", "tierd/cli"), 7_500),
    ("tierd: cluster", ("tierd/cluster",), 3_000),
    ("tierd: other", ("tierd",), 4_500),
    ("simulator", ("simulator",), 8_500),
    ("stack, dashboards, bench", ("stack", "dashboards", "bench"), 5_000),
)
"""Rooms, their folders, and the lines they should have at most. Of a file in two rooms, the first counts it."""
QUIET_CYCLE, TO_THE_FIRST_ACT = 40, 70
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


def rows() -> Iterator[tuple[str, int, int]]:
    """What is measured, how much it is, and how much it should be at the most."""
    counted: set[Path] = set()
    for room, places, budget in ROOMS:
        here = set[Path]().union(*map(files, places)) - counted
        counted |= here
        yield room, lines(here), budget
    yield "all product Python", lines(counted), 65_000
    yield "C", lines(files("exporter", "c") | files("lustre", "c") | files("tierd", "c")), 2_500
    yield "tests", lines(files("tests")), 42_000
    every = Settings()
    policies = sum(settings_of(each.settings) for each in every.policies)
    yield "settings of tierd, options of the exporter", settings_of(every) + policies + options(), 200
    yield "words of docs and README, without metrics.md", sum(
        words(page) for page in {ROOT / "README.md", *ROOT.glob("docs/*.md")} if page.name != "metrics.md"), 40_000
    quiet, acted = way_of_a_record()
    yield "files that run in a quiet cycle", quiet, QUIET_CYCLE
    yield "files that run up to the first act", acted, TO_THE_FIRST_ACT


def main() -> None:
    """Print the table."""
    for what, count, budget in rows():
        sys.stdout.write(f"{what:45} {count:7,} of {budget:7,}{'' if count <= budget else '  too much'}\n")


if __name__ == "__main__":
    main()
