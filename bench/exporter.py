"""``python -m bench.exporter``: processor time of a scrape, compared with reading the same files.

By default it makes trees of a client and of an object server in a temporary folder and changes all, few or none of
their counters between scrapes. With ``--tree`` it scrapes an existing folder without changes: the first scrape shows
the cost when everything is new, the next scrapes the cost when nothing has changed.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from prometheus_client import CollectorRegistry

from bench.trees import ClientTree, ServerTree
from exporter import clock, exposition
from exporter.__main__ import GC_ALLOCATIONS
from exporter.collector import Settings
from exporter.collectors import COLLECTORS
from exporter.scrape import Scraper
from lustre.parameters import Roots, Tree, read_whole

T = TypeVar("T")
FEW = 100
"""With few changes, one counter in this many changes."""
ROUNDS = 5


class Exporter:
    """The exporter without HTTP and without its own metrics: it reads, renders and joins."""

    def __init__(self, root: Path, **settings: object) -> None:
        every = frozenset(collector.name for collector in COLLECTORS)
        chosen = Settings(**{"enabled": every, "deadline_seconds": 600.0, **settings})  # type: ignore[arg-type]
        self.scraper = Scraper(Tree(Roots.of(root / "proc", root / "sys")), COLLECTORS, chosen, clock.monotonic)
        self._registry = CollectorRegistry()
        gc.set_threshold(GC_ALLOCATIONS)

    def scrape(self) -> float:
        """Return the processor seconds of one scrape. Its pieces are discarded, as if sent to a socket."""
        began = time.process_time()
        for _ in exposition.render(self.scraper.run(), self._registry, openmetrics=False):
            pass
        spent = time.process_time() - began
        wrong = {name: outcome.reason for name, outcome in self.scraper.outcomes.items() if outcome.reason}
        assert not wrong, wrong
        return spent

    def samples(self) -> int:
        pieces = exposition.render(self.scraper.run(), self._registry, openmetrics=False)
        return sum(piece.count(b"\n") - piece.count(b"\n#") - piece.startswith(b"#") for piece in pieces)


def best_of(measure: Callable[[], float]) -> float:
    """Return the lowest of several measurements, which other processes disturbed least."""
    gc.collect()
    return min(measure() for _ in range(ROUNDS))


def reading_seconds(paths: list[str]) -> float:
    def once() -> float:
        began = time.process_time()
        for path in paths:
            read_whole(path)
        return time.process_time() - began

    return best_of(once)


def opened_files(root: Path, action: Callable[[], object]) -> list[str]:
    """Files below a folder that an action opens. Adds an audit hook, which cannot be removed."""
    found: set[str] = set()
    acting = True

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if acting and event == "open" and str(arguments[0]).startswith(f"{root}/"):
            found.add(str(arguments[0]))

    sys.addaudithook(note)
    action()
    acting = False
    return sorted(found)


def peak_mebibytes() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def in_subprocess(task: Callable[..., T], *arguments: object) -> T:
    """Run a task in a fresh process, with the environment of the unit file, and return its result."""
    os.environ["MALLOC_ARENA_MAX"] = "1"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(task, *arguments).result()


@dataclass(frozen=True, slots=True)
class Row:
    tree: str
    files: int
    reading_seconds: float
    samples: int
    costs: dict[str, float]
    """Seconds by the share of changed counters."""
    peak_mebibytes: float


Move = Callable[[int, int], None]
"""Changes one in ``every`` counters; takes the number of the step and ``every``."""


def of_tree(tree: str, root: Path, move: Move | None, settings: dict[str, object]) -> Row:
    exporter = Exporter(root, **settings)
    first = exporter.scrape()
    steps = iter(range(1, 1000))

    def after(every: int) -> float:
        if move is not None:
            move(next(steps), every)
        return exporter.scrape()

    costs = {"first": first}
    if move is not None:
        costs["all"] = best_of(lambda: after(1))
        after(FEW)
        costs["few"] = best_of(lambda: after(FEW))
    costs["none"] = best_of(exporter.scrape)
    peak = peak_mebibytes()
    paths = opened_files(root, exporter.scrape)
    return Row(tree, len(paths), reading_seconds(paths), exporter.samples(), costs, peak)


def client(targets: int, settings: dict[str, object]) -> Row:
    name = f"client, {targets} OSTs" + (", per target" if settings.get("osc_per_target") else "")
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        return of_tree(name, Path(folder), ClientTree(Path(folder), targets).move, settings)


def server(targets: int, jobs: int, settings: dict[str, object]) -> Row:
    name = f"server, {targets} x {jobs} jobs" + (f", limit {settings['jobs_limit']}" if settings else "")
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        return of_tree(name, Path(folder), ServerTree(Path(folder), targets, jobs).move, settings)


def memory_folder() -> str | None:
    """Return a folder in memory if there is one, so that the disk does not affect the measurement."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def show(row: Row) -> None:
    print(f"\n{row.tree}: {row.samples} samples from {row.files} files (reading: {row.reading_seconds * 1e3:.1f} ms);"
          f" peak memory {row.peak_mebibytes:.0f} MiB")  # fmt: skip
    for what, spent in row.costs.items():
        times, each = spent / row.reading_seconds, spent / row.samples * 1e8
        print(f"  {what:<6}{spent * 1e3:>9.1f} ms, {times:>6.2f} x reading, {each:>8.1f} ms per 100,000 samples,"
              f" {row.samples / spent / 1e6:>5.2f} M samples/s")  # fmt: skip


def main() -> None:
    """Run all measurements, or only the measurements that the arguments select."""
    parser = argparse.ArgumentParser(prog="python -m bench.exporter", description=__doc__.partition("\n")[0])
    parser.add_argument("--tree", help="a folder with proc/ and sys/ below it")
    parser.add_argument("--small", action="store_true", help="leave out the largest trees")
    chosen = parser.parse_args()
    if chosen.tree:
        return show(in_subprocess(of_tree, chosen.tree, Path(chosen.tree), None, {}))
    for targets in (400,) if chosen.small else (400, 2000):
        for settings in ({}, {"osc_per_target": True}):
            show(in_subprocess(client, targets, settings))
    show(in_subprocess(server, 1, 10000, {}))
    show(in_subprocess(server, 1, 10000, {"jobs_limit": 50}))
    if not chosen.small:
        show(in_subprocess(server, 16, 10000, {}))
    return None


if __name__ == "__main__":
    main()
