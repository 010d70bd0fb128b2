"""Real and synthetic trees, and the exporter's output for them."""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from exporter import exposition
from exporter.collector import Settings
from exporter.collectors import COLLECTORS
from exporter.scrape import Scraper
from lustre.parameters import Roots, Tree
from lustre.unpack import unpack
from tests.exporter.written import unfold

EVERY = frozenset(collector.name for collector in COLLECTORS)


@dataclass
class Wall:
    """The clock of the node: later than all recordings. It moves by ``step`` each time it is read."""

    seconds: float = 1_800_000_000.0
    step: float = 0.0

    def __call__(self) -> float:
        self.seconds += self.step
        return self.seconds


@dataclass
class Exporter:
    """An exporter over a tree, for any number of scrapes."""

    root: Path
    settings: Settings
    wall: Wall = field(default_factory=Wall)
    scraper: Scraper = field(init=False)

    def __post_init__(self) -> None:
        tree = Tree(Roots.of(self.root / "proc", self.root / "sys"))
        self.scraper = Scraper(tree, COLLECTORS, self.settings, count(0.0, 2.0**-20).__next__, self.wall)

    def scrape(self, *names: str, openmetrics: bool = False) -> bytes:
        """What Lustre's parameters say, without the exporter's own metrics."""
        result = self.scraper.run(names or None)
        return b"".join(exposition.render(result, CollectorRegistry(), openmetrics=openmetrics))

    def skipped(self) -> dict[str, int]:
        """Lines left out, by parameter."""
        all_reads = [outcome.reads for outcome in self.scraper.outcomes.values()]
        return {parameter: lines for reads in all_reads for parameter, lines in reads.skipped.items()}

    def errors(self) -> dict[tuple[str, str], int]:
        """Readings that failed, by parameter and error."""
        all_reads = [outcome.reads for outcome in self.scraper.outcomes.values()]
        return {key: times for reads in all_reads for key, times in reads.errors.items()}

    def reasons(self) -> dict[str, str]:
        """Collectors that did not succeed, and why."""
        return {name: outcome.reason for name, outcome in self.scraper.outcomes.items() if outcome.reason}


@pytest.fixture
def exporter() -> Callable[..., Exporter]:
    """``exporter(root, osc_per_target=True)``: one over that tree, all collectors on."""

    def make(root: Path, **settings: object) -> Exporter:
        return Exporter(root, Settings(**{"enabled": EVERY, **settings}))  # type: ignore[arg-type]

    return make


@pytest.fixture
def grow(tmp_path: Path) -> Callable[[Mapping[str, str | bytes]], Path]:
    """``grow({"sys/fs/lustre/version": "2.17"})`` writes files below a root of the test's own; None removes one.

    Of a folder, None removes all.
    """

    def write(files: Mapping[str, str | bytes | None]) -> Path:
        (tmp_path / "proc").mkdir(exist_ok=True)
        (tmp_path / "sys").mkdir(exist_ok=True)
        for name, text in files.items():
            path = tmp_path / name
            if text is None:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
        return tmp_path

    return write


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str], Path]:
    """``written("2.12", "oss")`` is a folder with that node's ``proc`` and ``sys``."""
    return lambda release, role: unfold(release, role, tmp_path / release / role)


@pytest.fixture(scope="session")
def snapshots(tape: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """``snapshots("noisy-create-1m", 3)`` is a folder with ``proc`` and ``sys`` as they were then."""
    roots: dict[tuple[str, int], Path] = {}

    def unpacked(name: str, number: int) -> Path:
        if (name, number) not in roots:
            roots[name, number] = tmp_path_factory.mktemp(name)
            unpack(tape(name) / "tape.tar.xz", roots[name, number], lambda member: member.startswith(f"{number:03}/"))
        return roots[name, number] / f"{number:03}"

    return unpacked


Samples = dict[tuple[str, frozenset[tuple[str, str]]], str]


@pytest.fixture(scope="session")
def samples() -> Callable[[bytes], Samples]:
    """Reads an exposition into {(name, labels): digits}; a sample that comes twice is an error."""

    def read(text: bytes) -> Samples:
        found: Samples = {}
        for line in text.decode().split("\n"):
            if not line or line.startswith("#"):
                continue
            before, _, value = line.rpartition(" ")
            name, _, labels = before.partition("{")
            key = name, frozenset((label, re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text))
                                  for label, text in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))
            assert key not in found, line
            found[key] = value
        return found

    return read
