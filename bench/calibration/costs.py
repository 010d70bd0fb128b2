"""Costs of calls and moves, compared with a real Lustre: movers, cycles, default layouts, streams."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bench.calibration import Row, number
from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.costs import MEASURED, PRESETS
from simulator.filesystem import Calls, SimulatedFilesystem
from simulator.scenarios.scenario import library
from simulator.scheduler import VirtualScheduler
from simulator.settings import measured_test_bed

HERE = "Lustre 2.17.57"
FILES = 200
SIZES = tuple(4096 << shift for shift in (0, 2, 4, 6, 8))
FLASH = Layout((Component(pool="flash"),), composite=False)
HDD = Layout((Component(pool="hdd"),), composite=False)
COVERING = Layout((Component(0, 2 << 20, "flash"), Component(2 << 20, None, "hdd")))
STREAM = "ior_stream.1001"
DIRECTORIES = 28
CYCLE_SECONDS = 5.0
MAX_CHANGELOG_READS = 8
"""Maximum number of reads of one changelog in one cycle, as in tierd."""


def rows() -> list[Row]:
    one, many = library("crowded-directory"), library("crowded-directories")
    alone = stream_rate_with_neighbour(one.variants()["alone"].build())
    return [
        Row("lease engine, 1 worker, files/s", HERE, "4.5", number(files_per_second("measured_lease", 1)), used=True),
        Row("lease engine, 4 workers, files/s", HERE, "10.4", number(files_per_second("measured_lease", 4)), used=True),
        Row("lfs migrate, 1 worker, files/s", HERE, "5.7", number(files_per_second("measured", 1)), used=True),
        Row("lfs migrate, 4 workers, files/s", HERE, "11.1", number(files_per_second("measured", 4)), used=True),
        Row("a cycle on an idle node, s", HERE, "0.2", number(observe_seconds(
            Cluster(replace(measured_test_bed(), costs=MEASURED)))), used=True),
        Row("a cycle with 20 workers, s", HERE, "14 to 27", number(observe_seconds(one.build())), used=True),
        Row("28 default layouts with 44 workers, s", HERE, "84", number(default_layout_seconds(many.build())),
            used=True),
        Row("stream alone, MB/s", HERE, "66.5", number(alone)),
        Row("stream with 20 workers in one directory, MB/s", HERE, "52.2",
            number(stream_rate_with_neighbour(one.build()))),
        Row("stream with 44 workers in 44 directories, MB/s", HERE, "49.0",
            number(stream_rate_with_neighbour(many.build()))),
    ]


def files_per_second(preset: str, workers: int) -> float:
    """Rate at which ``workers`` check files and move them from disks to flash."""
    cluster = Cluster(replace(measured_test_bed(), costs=PRESETS[preset]))
    cluster.make_directory("/files", HDD)
    sizes = Random("sizes")
    paths = [cluster.make_file(f"/files/{number}", sizes.choice(SIZES)).path for number in range(FILES)]
    filesystem = SimulatedFilesystem(cluster)

    def move(path: str) -> None:
        filesystem.status(path)
        filesystem.migrate(path, FLASH)

    with VirtualScheduler(cluster) as scheduler, scheduler.executor(workers) as executor:
        cluster.advance(5)
        begun = cluster.now
        for path in paths:
            executor.submit(move, path)
        executor.shutdown()
        return FILES / (cluster.now - begun)


def observe_seconds(cluster: Cluster) -> float:
    """Mean time to read all counters and new changelog records, in cycles of some seconds."""
    filesystem = SimulatedFilesystem(cluster)
    calls = Calls(cluster, cluster.settings.costs)
    known = {mdt.short_name: 0 for mdt in cluster.mdts}
    took = []
    while cluster.now < 200:
        cluster.advance(CYCLE_SECONDS)
        begun = cluster.now
        calls.read_counters()
        for mdt in cluster.mdts:
            for _ in range(MAX_CHANGELOG_READS):
                last = mdt.changelog.last_index
                filesystem.changelog(mdt.short_name, known[mdt.short_name])
                if known[mdt.short_name] == last:
                    break
                known[mdt.short_name] = last
        if begun > 90:  # the neighbour has been there for a while
            took.append(cluster.now - begun)
    return sum(took) / len(took)


def default_layout_seconds(cluster: Cluster) -> float:
    """Time to check ``DIRECTORIES`` directories and to change their default layouts, one after the other."""
    filesystem = SimulatedFilesystem(cluster)
    cluster.advance(90)
    begun = cluster.now
    for index in range(1, DIRECTORIES + 1):
        place = f"/proj/crowds/d{index}"
        filesystem.layout(place)
        filesystem.path_of(filesystem.status(place).fid)
        for above in (place, "/proj/crowds", "/proj", "/"):
            filesystem.xattr(above, "user.tierd")
        filesystem.set_default_layout(place, COVERING)
        filesystem.layout(place)
    return cluster.now - begun


def stream_rate_with_neighbour(cluster: Cluster) -> float:
    """MB/s of the stream, without tierd, some time after the neighbour started."""
    cluster.advance(180)
    return cluster.log.mean(STREAM, 80, 180)
