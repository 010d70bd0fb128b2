"""Runs an exporter in this process over a tree, and measures the processor time of its scrapes."""

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
from exporter.__main__ import GC_ALLOCATIONS
from exporter.collector import Settings
from exporter.collectors import COLLECTORS
from exporter.scrape import Scraper
from lustre.parameters import Roots, Tree, read_whole

T = TypeVar("T")


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


def best_of(measure: Callable[[], float], times: int = 5) -> float:
    """Return the lowest of several measurements, which other processes disturbed least."""
    gc.collect()
    return min(measure() for _ in range(times))


def reading_seconds(paths: list[str]) -> float:
    def once() -> float:
        began = time.process_time()
        for path in paths:
            read_whole(path)
        return time.process_time() - began

    return best_of(once)


class OpenedFiles:
    """Records which files below a folder this process opens. It adds an audit hook, which cannot be removed."""

    def __init__(self, root: Path) -> None:
        self._below = f"{root}/"
        self._paths: set[str] = set()
        self._on = False
        sys.addaudithook(self._note)

    def during(self, action: Callable[[], object]) -> list[str]:
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


def resident_mebibytes(pid: int | str = "self") -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def peak_mebibytes() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def in_subprocess(task: Callable[..., T], *arguments: object) -> T:
    """Run a task in a fresh process, with the environment of the unit file, and return its result."""
    os.environ["MALLOC_ARENA_MAX"] = "1"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(task, *arguments).result()
