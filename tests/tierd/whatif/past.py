"""A past that a Prometheus keeps: what lustre-exporter showed of a simulated cluster, in virtual time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from exporter import clock, exposition
from exporter.__main__ import build_parser, check_arguments
from exporter.collectors import COLLECTORS
from exporter.scrape import Scraper
from exporter.self_metrics import registry
from lustre.parameters import Tree
from simulator.cluster import Cluster
from tests.dashboards.recorded import labelled
from tests.servers import program, prometheus
from tierd.sense.prometheus_past import ABOUT, JOBS

READ = ("jobs", "ost", "recovery", "osd", "pools")
"""Collectors that whatif needs."""
Change = Callable[[Cluster, str], str]
"""What becomes of an exposition: a gap, a restart."""


def record(cluster: Cluster, seconds: float, folder: Path, scrape_seconds: float = 15.0,
           change: Change = lambda _, text: text) -> Path:
    """Let the cluster live without tierd, and write down in OpenMetrics form what is scraped."""
    root = folder / "node"
    (root / "proc").mkdir(parents=True)
    (root / "sys").mkdir()
    wanted = check_arguments(build_parser().parse_args([f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys"]))
    scraper = Scraper(Tree(wanted.roots), [each for each in COLLECTORS if each.name in READ], wanted.settings,
                      clock.monotonic, wall=lambda: cluster.epoch)
    own = registry(scraper, None)
    wanted_names = tuple(f"{name}{{" for name in (*ABOUT, *JOBS))
    with (folder / "past.openmetrics").open("w", encoding="utf-8") as out:
        while cluster.now < seconds:
            cluster.advance(scrape_seconds)
            cluster.write_parameters(root, clients=False)
            text = change(cluster, b"".join(exposition.render(scraper.run(), own, openmetrics=False)).decode())
            out.writelines(f"{line}\n" for line in labelled(text, "lustre", "oss01:9169", cluster.epoch)
                           if line.startswith(wanted_names))
        out.write("# EOF\n")
    return folder / "past.openmetrics"


@contextmanager
def kept(file: Path, folder: Path) -> Iterator[str]:
    """The URL of a Prometheus with these samples."""
    made = subprocess.run([program("promtool"), "tsdb", "create-blocks-from", "openmetrics", "-q", str(file),
                           str(folder / "data")], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    with prometheus(folder, folder / "data") as server:
        yield server.url
