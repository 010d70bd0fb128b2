"""A past that a Prometheus keeps: what lustre-exporter showed of a simulated cluster, in virtual time."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from exporter import clock, exposition
from exporter.__main__ import build_parser, check_arguments
from exporter.collectors import COLLECTORS
from exporter.scrape import Scraper
from exporter.self_metrics import registry
from lustre.parameters import Tree
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.parameters import write_parameters
from simulator.settings import recorded_test_bed
from tests.alerts.site import EXPORTER, labelled
from tests.servers import output_of, prometheus
from tests.tierd.simulated import NOISE, STREAM
from tierd.clock import SystemClock
from tierd.config.sense import PrometheusSettings
from tierd.sense.http_client import HttpClient, SourceError
from tierd.sense.prometheus import QueryApi, Series
from tierd.sense.prometheus_past import ABOUT, JOBS

READ = ("jobs", "ost", "recovery", "osd", "pools")
"""Collectors that whatif needs."""
LOOKBACK_SECONDS = 300.0
"""For so long Prometheus repeats a sample."""


def record(cluster: Cluster, seconds: float, folder: Path, scrape_seconds: float = 15.0) -> Path:
    """Let the cluster live without tierd, and write down in OpenMetrics form what is scraped."""
    root = folder / "node"
    (root / "proc").mkdir(parents=True)
    (root / "sys").mkdir()
    wanted = check_arguments(build_parser().parse_args([f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys"]))
    scraper = Scraper(Tree(wanted.roots), [each for each in COLLECTORS if each.name in READ], wanted.settings,
                      clock.monotonic, wall=lambda: cluster.epoch)
    own, names = registry(scraper, None), tuple(f"{name}{{" for name in (*ABOUT, *JOBS))
    file = folder / "past.openmetrics"
    with file.open("w", encoding="utf-8") as out:
        while cluster.now < seconds:
            cluster.advance(scrape_seconds)
            write_parameters(cluster, root, clients=False)
            text = b"".join(exposition.render(scraper.run(), own, openmetrics=False)).decode()
            out.writelines(f"{series} {value} {cluster.epoch:.3f}\n" for series, value in labelled(text, *EXPORTER)
                           if series.startswith(names))
        out.write("# EOF\n")
    return file


@contextmanager
def kept(file: Path, folder: Path) -> Iterator[str]:
    """The URL of a Prometheus with these samples."""
    output_of("promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", file, folder / "data")
    with prometheus(folder, folder / "data") as server:
        yield server.url


_SAMPLE = re.compile(r"^(\w+)\{(.*)\} (\S+) (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
Labels = tuple[tuple[str, str], ...]
Samples = dict[Labels, list[tuple[float, float]]]
"""By labels with the name: times and values."""


def samples_of(file: Path) -> Samples:
    found: Samples = {}
    for line in file.read_text().splitlines()[:-1]:
        match = _SAMPLE.match(line)
        assert match is not None, line
        labels = ("__name__", match[1]), *sorted(_LABEL.findall(match[2]))
        found.setdefault(labels, []).append((float(match[4]), float(match[3])))
    return found


@dataclass(frozen=True)
class Kept(QueryApi):
    """Answers the queries of whatif from samples, as Prometheus does."""

    samples: Samples = field(default_factory=dict)
    most_samples: int = 10**9
    """A larger answer is refused."""
    asked: list[str] = field(default_factory=list)
    interrupted_after: int = 10**9
    """Queries until Ctrl-C."""
    aligns: bool = False
    """Whether times are moved to multiples of the step."""

    def series(self, path: str, form: Mapping[str, str]) -> list[Series]:
        self.asked.append(form["query"])
        if len(self.asked) > self.interrupted_after:
            raise KeyboardInterrupt
        wanted = re.search(r"(\w*)\{(.*)\}", form["query"])
        assert wanted is not None
        matchers = [(name, re.compile(value if sign == "=~" else re.escape(value)))
                    for name, sign, value in re.findall(r'(\w+)(=~|=)"([^"]*)"', wanted[2])]
        if wanted[1]:
            matchers.append(("__name__", re.compile(wanted[1])))
        chosen = {labels: points for labels, points in self.samples.items()
                  if all(value.fullmatch(dict(labels).get(name, "")) for name, value in matchers)}
        if path.endswith("/query"):
            return [of(labels, points) for labels, points in chosen.items()]
        begin, end, step = (float(form[name]) for name in ("start", "end", "step"))
        if self.aligns:
            begin, end = begin - begin % step, end - end % step + step
        times = [begin + number * step for number in range(int((end - begin) / step + 1e-6) + 1)]
        if form["query"].startswith("count by (fs)"):
            return [series for fs in sorted({dict(labels)["fs"] for labels in chosen})
                    if (series := self._count(fs, chosen, times, step)).points]
        found = [of(labels, list(at_times(points, times))) for labels, points in chosen.items()]
        if sum(len(series.points) for series in found) > self.most_samples:
            raise SourceError("too many samples")
        return [series for series in found if series.points]

    @staticmethod
    def _count(fs: str, chosen: Samples, times: list[float], step: float) -> Series:
        every = sorted(at for labels, points in chosen.items() if ("fs", fs) in labels for at, _ in points)
        return Series("", {"fs": fs}, [(time, 1.0) for time in times
                                       if bisect_right(every, time) > bisect_right(every, time - step)])


def of(labels: Labels, points: list[tuple[float, float]]) -> Series:
    (_, name), *rest = labels
    return Series(name, dict(rest), points)


def at_times(points: list[tuple[float, float]], times: list[float]) -> Iterator[tuple[float, float]]:
    for time in times:
        place = bisect_right(points, (time, float("inf")))
        if place and points[place - 1][0] > time - LOOKBACK_SECONDS:
            yield time, points[place - 1][1]


def keeping(samples: Samples, fsname: str = "", most_samples: int = 10**9, interrupted_after: int = 10**9) -> Kept:
    """A query API that keeps these samples."""
    settings = PrometheusSettings("http://prometheus.invalid:9090")
    return Kept(settings, fsname, SystemClock(), HttpClient(settings.access, 1.0, {}), 1.0, 30.0, samples=samples,
                most_samples=most_samples, interrupted_after=interrupted_after)


SECONDS = 600.0
RAN = (STREAM, replace(NOISE, start_seconds=120.0))


@dataclass(frozen=True)
class Past:
    """Ten minutes of the recorded test bed: a stream, and beside it from the second minute on a neighbour."""

    file: Path
    samples: Samples
    begin: float
    end: float
    streamed_bytes: float


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    cluster = FluidCluster(recorded_test_bed(), RAN)
    begin = cluster.epoch
    file = record(cluster, SECONDS, tmp_path_factory.mktemp("past"))
    return Past(file, samples_of(file), begin, cluster.epoch, sum(cluster.throughput(STREAM.job_id, 0, SECONDS)) * 1e6)
