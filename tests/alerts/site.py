"""A simulated site with trouble on it, scraped every minute of virtual time, as series of a promtool test.

The cluster writes its parameter files, a trouble changes the cluster or the files, and the exporter and tierd's
registry render what they then see. A few minutes are simulated. Alerts that wait for hours see the trouble go on as it
was: gauges stay, counters grow as in the last minute.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import generate_latest

from exporter import clock, exposition
from exporter.__main__ import build_parser, check_arguments
from exporter.collectors import COLLECTORS
from exporter.scrape import Scraper
from exporter.self_metrics import registry as exporter_registry
from httpserver.config import WebConfigFile
from lustre.parameters import Tree
from simulator.cluster import Cluster
from simulator.jobs import Job
from simulator.parameters import write_parameters
from simulator.scenarios.events import Event
from simulator.settings import ClusterSettings, recorded_test_bed
from tests.conftest import as_user
from tests.exporter.written import files_of
from tierd.act.claim import FilesystemClaim
from tierd.config.settings import Settings
from tierd.daemon.answers import Case
from tierd.daemon.metrics import MetricsContext
from tierd.daemon.metrics import registry as tierd_registry
from tierd.daemon.status import snapshot_of
from tierd.integrations.powerflex.source import PowerFlex
from tierd.sense.changelogs.tally_source import TallySource
from tierd.sense.freshness import SourceAge
from tierd.simulation.world import World, wire

MINUTE = 60.0
EXPORTER, TIERD = ("lustre", "oss01:9169"), ("tierd", "mds01:9170")
"""Scrape job and instance."""
SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
TAKEN = re.compile(r'(?:^|,)(?:job|instance)="')
"""Labels that Prometheus adds, and would rename where an exporter has them."""
Series = dict[str, list[float | None]]
"""Values of each series by minute; None where a scrape has no such sample."""

HEALTHY = (
    (r"osp/[^/]+/active$", "1\n"), (r"osp/[^/]+/prealloc_status$", "0\n"), (r"spill_is_active$", "0\n"),
    (r"eviction_count$", "0\n"),
)
UNSIMULATED = re.compile(r"/osp/|/lod/[^/]+/pool/|/(?:ost|mds)/[^/]+/[^/]+/(?:threads_|nrs_policies)|/lnet/|/oi_scrub$"
                         r"|/lfsck_|/eviction_count$|/num_exports$|/quota_slave_")
"""Parameters that the simulator does not write; the nodes written from Lustre's source have them."""


def write_unsimulated(root: Path) -> None:
    """Parameters of a healthy server that the simulator lacks."""
    for role in ("oss", "mds"):
        for path, text in files_of("2.16", role):
            if not UNSIMULATED.search(path):
                continue
            wanted = next((healthy for pattern, healthy in HEALTHY if re.search(pattern, path)), text)
            wanted = re.sub(r"^(\s*(?:queued|active): )\d+", r"\g<1>0", wanted, flags=re.MULTILINE)
            wanted = re.sub(r"^(\s*state: )(?!FULL|started|stopped)[A-Z]+$", r"\1FULL", wanted, flags=re.MULTILINE)
            wanted = re.sub(r"^status: .*$", "status: completed", wanted, flags=re.MULTILINE)
            file = root / path.replace("work-", "lustre-")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(wanted.replace("work-", "lustre-"))


@dataclass
class Site:
    """A cluster, an exporter over its parameter files and, where a trouble needs it, tierd at work on it."""

    folder: Path
    jobs: Sequence[Job] = ()
    settings: Settings | None = None
    """Of tierd. Without any, the site has none."""
    dry_run: bool = False
    hardware: Callable[[], ClusterSettings] = recorded_test_bed
    claim: Callable[[Cluster], FilesystemClaim] = lambda _: FilesystemClaim()
    """tierd's claim on the file system."""
    down: set[tuple[str, str]] = field(default_factory=set)
    """What Prometheus cannot scrape."""
    scrape_seconds: float = 0.1
    tierd_hangs: bool = False
    with_web_config: bool = False
    scraped_as: int = 0
    """User id of the exporter, where the tests run as root."""
    sources: Callable[[], Sequence[SourceAge]] = tuple
    tallies: Callable[[Cluster], TallySource | None] = lambda _: None
    """Tallies of changelog readers, for tierd."""
    powerflex: Callable[[Cluster], PowerFlex | None] = lambda _: None
    """The storage below the OSTs, for tierd."""
    model: Callable[[ClusterSettings, Sequence[Job]], Cluster] = Cluster
    """FluidCluster takes a fraction of the time, and exposes servers and the mount of the mover only."""
    cycle_seconds: float = 5.0
    """Of tierd."""
    edits: list[Callable[[], None]] = field(default_factory=list)
    """Changes of parameter files, repeated after the cluster has written them."""

    def __post_init__(self) -> None:
        self.cluster = self.model(self.hardware(), self.jobs)
        self.root = self.folder / "node"
        (self.root / "proc").mkdir(parents=True)
        (self.root / "sys").mkdir()
        write_unsimulated(self.root)
        self.web_config: WebConfigFile | None = None
        if self.with_web_config:
            file = self.folder / "web.yml"
            file.write_text("{}\n")
            self.web_config = WebConfigFile(file)
        arguments = [f"--path.procfs={self.root}/proc", f"--path.sysfs={self.root}/sys"]
        wanted = check_arguments(build_parser().parse_args(arguments))
        self.scraper = Scraper(Tree(wanted.roots), COLLECTORS, wanted.settings, clock.monotonic)
        self.of_exporter = exporter_registry(self.scraper, self.web_config)
        self.world: World | None = None
        self.below: PowerFlex | None = None
        if self.settings is not None:
            self.world = wire(self.cluster, self.settings, self.folder, self.dry_run, claim=self.claim(self.cluster))
            self.below = self.powerflex(self.cluster)
            beside = MetricsContext(self.world.filesystem.fsname, cases=self._cases, sources=self._source_ages,
                                    web_config=self.web_config, tallies=self.tallies(self.cluster),
                                    integrations=(self.below,) if self.below is not None else ())
            self.of_tierd = tierd_registry(self.world.daemon, beside)
        self.begin = self.cluster.epoch
        self._away: list[tuple[Path, Path]] = []
        self.series: Series = {}
        self.minutes = 0

    def _cases(self) -> Sequence[Case]:
        return snapshot_of(self.world.daemon).cases

    def _source_ages(self) -> Sequence[SourceAge]:
        below = [self.below.age] if self.below is not None else []
        return [*self.sources(), *below]

    # trouble

    def event(self, kind: str, **values: object) -> None:
        """An event of the simulator, now."""
        Event(0.0, kind, values)(self.cluster)

    def edit(self, pattern: str, change: Callable[[str], str]) -> None:
        """Change the text of the files that match a glob below the root, from now on. There must be some."""
        def apply() -> None:
            files = sorted(self.root.glob(pattern))
            assert files, f"no file {pattern}"
            for file in files:
                text = file.read_text()
                if file in written and text == written[file]:  # the cluster does not write this one
                    text = before[file]
                before[file], written[file] = text, change(text)
                file.write_text(written[file])

        before: dict[Path, str] = {}
        written: dict[Path, str] = {}
        self.edits.append(apply)

    def remove(self, pattern: str) -> None:
        """Remove the folders that match a glob below the root, from now on."""
        def apply() -> None:
            for folder in sorted(self.root.glob(pattern)):
                self._away.append((folder, self.folder / f"away{len(self._away)}"))
                folder.rename(self._away[-1][1])

        self.edits.append(apply)

    # time

    def run(self, minutes: int, each: Callable[[Site], None] = lambda _: None) -> None:
        """Let time pass, and scrape once a minute."""
        for _ in range(minutes):
            each(self)
            self.live(MINUTE)
            for series, value in self.samples():
                values = self.series.setdefault(series, [])
                values.extend([None] * (self.minutes - len(values)))
                values.append(self._relative(series.partition("{")[0], value))
            self.minutes += 1
            for values in self.series.values():
                values.extend([None] * (self.minutes - len(values)))

    def live(self, seconds: float) -> None:
        """Let the cluster live, with tierd at work on it."""
        until = self.cluster.now + seconds
        if self.world is not None and not self.tierd_hangs:
            self.world.run(until, self.cycle_seconds)
        self.cluster.advance(max(0.0, until - self.cluster.now))

    def samples(self) -> Iterator[tuple[str, float]]:
        """Series and values of a scrape of everything by Prometheus."""
        while self._away:  # the cluster goes on writing there
            folder, kept = self._away.pop()
            kept.rename(folder)
        write_parameters(self.cluster, self.root)
        for edit in self.edits:
            edit()
        if self.world is not None and self.below is not None:
            self.below.refresh()
        pages = {EXPORTER: lambda: b"".join(
            exposition.render(self.scraper.run(), self.of_exporter, openmetrics=False)).decode()}
        if self.world is not None:
            pages[TIERD] = lambda: generate_latest(self.of_tierd).decode()
        for (job, instance), page in pages.items():
            up = (job, instance) not in self.down and (job != "lustre" or self.cluster.exporter_reachable)
            with as_user(self.scraped_as):
                text = page() if up else ""
            yield from labelled(text, job, instance, up=float(up), scrape_duration_seconds=self.scrape_seconds)

    def _relative(self, name: str, value: float) -> float:
        """Times since the beginning: promtool's clock starts at 0."""
        if name == "process_start_time_seconds":
            return 0.0
        return value - self.begin if name.endswith("timestamp_seconds") and value > 0 else value

    def close(self) -> None:
        """Close the journal."""
        if self.world is not None:
            self.world.journal.close()


def labelled(text: str, job: str, instance: str, **added: float) -> Iterator[tuple[str, float]]:
    """Samples of a page as Prometheus stores them: with its own labels, which no metric of ours has, and its own."""
    own = f'job="{job}",instance="{instance}"'
    found = SAMPLE.findall(text)
    for name, labels, value in found:
        assert not TAKEN.search(labels), f"{name}: Prometheus renames a label of {{{labels}}}"
        yield f'{name}{{{labels}{"," if labels else ""}{own}}}', float(value)
    for name, value_added in {**added, "scrape_samples_scraped": float(len(found))}.items():
        yield f"{name}{{{own}}}", value_added


COUNTERS = ("_total", "_bucket", "_sum", "_count")


def promtool_series(series: Series, names: Collection[str], minutes: int, trends: Collection[str] = (),
                    ) -> Iterator[Mapping[str, str]]:
    """The series of some metrics, which go on as they were until so many minutes.

    Gauges among ``trends`` go on changing as in the last minute.
    """
    for name, values in sorted(series.items()):
        metric = name.partition("{")[0]
        if metric in names:
            yield {"series": name, "values": notation(
                values, minutes - len(values), metric.endswith(COUNTERS) or metric in trends)}


def notation(values: Sequence[float | None], more: int, grows: bool) -> str:
    """Values as promtool writes them, and so many more.

    >>> notation([None, 1.0, 3.0], 5, True), notation([1.0, 2.0], 5, False), notation([1.0, None], 3, True)
    ('_ 1.0 3.0+2.0x5', '1.0 2.0x5', '1.0 stale _x3')
    """
    words = ["_" if value is None else number(value) for value in values]
    for place in range(1, len(values)):
        if values[place] is None and values[place - 1] is not None:
            words[place] = "stale"
    last, before = values[-1], values[-2] if len(values) > 1 else None
    if more <= 0:
        return " ".join(words)
    if last is None:
        return " ".join([*words, f"_x{more}"])
    step = last - before if grows and before is not None else 0.0
    change = f"{'+' if step > 0 else '-'}{number(abs(step))}" if step else ""
    words[-1] = f"{number(last)}{change}x{more}"
    return " ".join(words)


def number(value: float) -> str:
    """A number as promtool reads it."""
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Inf", "-inf": "-Inf"}[str(value)]
    return f"{value:.17g}" if abs(value) >= 1e15 or value != round(value, 6) else f"{value!r}"
