"""The whole road in virtual time: simulated cluster, parameter files, exporter over HTTP, tierd, the same cluster."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from lustre.changelog.record import Record
from stack.demo import running_exporter
from tests.servers import body_of
from tests.tierd.simulated import NOISE, STREAM, world
from tierd.clock import SystemClock
from tierd.config.sense import ServerAccess
from tierd.sense.changelogs.tallies import Tally
from tierd.sense.exporters import ExporterReadings, HttpAnswers
from tierd.sense.exposition import READ_AT
from tierd.sense.http_client import HttpClient, Response
from tierd.sense.readings import Reading, window
from tierd.sense.sources import LiveSource
from tierd.simulation.world import VirtualClock


class Untimed(HttpClient):
    """Leaves out when counters were read: the exporter has the time of day, and the cluster its own."""

    def send(self, *arguments: Any, **more: Any) -> Response:
        answer = super().send(*arguments, **more)
        lines = answer.body.splitlines(keepends=True)
        return replace(answer, body=b"".join([line for line in lines if not line.startswith(READ_AT.encode())]))


class Both(LiveSource):
    """Scrapes the exporter just after the cluster wrote its files, and keeps the content of the files."""

    def __init__(self, url: str, near: LiveSource, clock: VirtualClock) -> None:
        self._near = near
        self._scrape = ExporterReadings(
            lambda: [url], HttpAnswers(Untimed(ServerAccess(), 5.0), clock, 5.0, float("inf")), clock)
        self.pairs: list[tuple[Reading, Reading]] = []

    def reading(self) -> Reading:
        near = self._near.reading()
        far = self._scrape()
        self.pairs.append((near, far))
        return far

    def records(self) -> Iterable[Sequence[Record] | Tally]:
        return self._near.records()


def test_from_a_parameter_file_to_a_layout_and_a_recovered_stream(tmp_path: Path) -> None:
    root = tmp_path / "node"
    (root / "proc").mkdir(parents=True)
    (root / "sys").mkdir()
    with running_exporter(root, 0, SystemClock()) as url:
        at = world(tmp_path, hook=lambda near, clock: Both(url, near, clock))
        source = at.source
        assert isinstance(source, Both)
        at.run(until=130)
        page = body_of(url.removesuffix("metrics"))
    reported = "\n".join(at.said)
    assert "FOUND noisy-neighbour" in reported
    assert "SET default layout of /proj/ingest: first 1M on flash" in reported
    assert "KEPT: it helped" in reported
    assert at.rate(STREAM.job_id, 110, 128) >= 0.97 * at.rate(STREAM.job_id, 5, NOISE.start_seconds)
    assert "Lustre exporter" in page
    for (near0, far0), (near1, far1) in pairwise(source.pairs):
        assert far1.targets <= near1.targets  # an MDT nobody has used yet shows no counters
        over_http, from_files = window(far0, far1), window(near0, near1)
        assert over_http.loads.keys() == from_files.loads.keys()
        for key, load in from_files.loads.items():
            same = over_http.loads[key]
            assert (same.read_bytes, same.write_bytes, same.reads, same.writes) == (
                load.read_bytes, load.write_bytes, load.reads, load.writes)
            assert same.sizes == load.sizes
        assert over_http.namespace.keys() == from_files.namespace.keys()
