"""An exporter in this process over a tree, and what its scrapes cost in processor time."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from prometheus_client import CollectorRegistry

from exporter import clock, exposition
from exporter.collector import Settings
from exporter.collectors import COLLECTORS
from exporter.scrape import Scraper
from lustre.parameters import Roots, Tree, read_whole

T = TypeVar("T")


class Exporter:
    """The exporter without HTTP and without its own metrics: what reads, renders and joins."""

    def __init__(self, root: Path, **settings: object) -> None:
        every = frozenset(collector.name for collector in COLLECTORS)
        chosen = Settings(**{"enabled": every, "deadline_seconds": 600.0, **settings})  # type: ignore[arg-type]
        self.scraper = Scraper(Tree(Roots.of(root / "proc", root / "sys")), COLLECTORS, chosen, clock.monotonic)
        self._registry = CollectorRegistry()

    def scrape(self) -> float:
        """Processor seconds of one scrape, thrown away piece by piece as a socket would take it."""
        began = time.process_time()
        for _ in exposition.render(self.scraper.run(), self._registry, openmetrics=False):
            pass
        spent = time.process_time() - began
        wrong = {name: outcome.reason for name, outcome in self.scraper.outcomes.items() if outcome.reason}
        assert not wrong, wrong
        return spent

    def samples(self) -> int:
        """How many samples a scrape has."""
        pieces = exposition.render(self.scraper.run(), self._registry, openmetrics=False)
        return sum(piece.count(b"\n") - piece.count(b"\n#") - piece.startswith(b"#") for piece in pieces)

    def text(self) -> bytes:
        """The exposition."""
        return b"".join(exposition.render(self.scraper.run(), self._registry, openmetrics=False))


def best_of(measure: Callable[[], float], times: int = 5) -> float:
    """The least of several: the one the neighbours disturbed least."""
    gc.collect()
    return min(measure() for _ in range(times))


def reading_seconds(paths: list[str]) -> float:
    """Processor seconds to read these files and do nothing with them."""

    def once() -> float:
        began = time.process_time()
        for path in paths:
            read_whole(path)
        return time.process_time() - began

    return best_of(once)


class OpenedFiles:
    """Which files below a folder this process opens, noted by the interpreter itself; it cannot be taken back."""

    def __init__(self, root: Path) -> None:
        self._below = f"{root}/"
        self._paths: set[str] = set()
        self._on = False
        sys.addaudithook(self._note)

    def during(self, action: Callable[[], object]) -> list[str]:
        """Files opened while ``action`` runs."""
        self._paths.clear()
        self._on = True
        action()
        self._on = False
        return sorted(self._paths)

    def _note(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._on and event == "open":
            path = arguments[0]
            if isinstance(path, str | os.PathLike) and str(path).startswith(self._below):
                self._paths.add(str(path))


def resident_mebibytes() -> float:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def peak_mebibytes() -> float:
    """The most it ever was."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def in_subprocess(task: Callable[..., T], *arguments: object) -> T:
    """The task's result from a fresh process, so that memory and caches are its alone; set up as the unit file does."""
    os.environ["MALLOC_ARENA_MAX"] = "1"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(task, *arguments).result()
