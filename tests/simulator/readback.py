"""Parameter files read back with the parsers everybody uses, and compared with the model's own numbers."""

from __future__ import annotations

from lustre.formats import brw_stats, job_stats, rpc_stats, stats
from simulator.cluster import Cluster
from simulator.counters import Histogram, Stats

PROC, SYSFS, DEBUGFS = "proc/fs/lustre", "sys/fs/lustre", "sys/kernel/debug/lustre"


def same_counters(data: bytes, expected: Stats) -> None:
    read = stats.parse(data)
    assert read.skipped == 0
    used = {name.encode(): counter for name, counter in expected.items() if counter.samples}
    assert set(read.names) == set(used)
    for name, counter in used.items():
        got = read.counter(name)
        assert got.samples == counter.samples
        assert got.unit == counter.unit.encode()
        if counter.detail:
            words = next(line for line in data.splitlines() if line.split()[0] == name).split()
            assert [*map(int, words[4:7]), got.sum] == [counter.minimum, counter.maximum, *[counter.total] * 2]


def nonzero(histogram: Histogram) -> list[int]:
    return [count for count in histogram.buckets if count]


def counters(cluster: Cluster, files: dict[str, bytes]) -> None:
    """Every stats file has the counters of the model, no more and no fewer."""
    for client in cluster.clients:
        same_counters(files[f"{DEBUGFS}/llite/lustre-{client.settings.instance}/stats"], client.stats)
        for osc in client.oscs:
            same_counters(files[f"{DEBUGFS}/osc/{osc.name}/stats"], osc.stats)
        for mdc in client.mdcs:
            same_counters(files[f"{DEBUGFS}/mdc/{mdc.name}/stats"], mdc.stats)
            same_counters(files[f"{PROC}/mdc/{mdc.name}/md_stats"], mdc.md_stats)
    for ost in cluster.osts:
        same_counters(files[f"{DEBUGFS}/obdfilter/{ost.name}/stats"], ost.stats)
    for mdt in cluster.mdts:
        same_counters(files[f"{PROC}/mdt/{mdt.name}/md_stats"], mdt.stats)


def jobs(cluster: Cluster, files: dict[str, bytes]) -> None:
    """Every job, with its counters and histograms."""
    for ost in cluster.osts:
        read = job_stats.parse(files[f"{PROC}/obdfilter/{ost.name}/job_stats"])
        entries = ost.jobs.entries(cluster.now)
        assert read.skipped == 0
        assert [job.job_id for job in read.jobs] == [entry.job_id.encode() for entry in entries]
        for job, entry in zip(read.jobs, entries, strict=True):
            assert job.names == tuple(name.encode() for name, _ in entry.stats.items())
            assert [int(n) for n in job.samples] == [counter.samples for _, counter in entry.stats.items()]
            assert [int(n) for n in job.sums] == [counter.total for _, counter in entry.stats.items()]
            for name, buckets in job.histograms:
                model = entry.histograms[name.decode()]
                assert buckets == tuple((1 << i, n) for i, n in enumerate(model.buckets) if n)


def rpcs(cluster: Cluster, files: dict[str, bytes]) -> None:
    """Every table of every connection."""
    for client in cluster.clients:
        for osc in client.oscs:
            read = rpc_stats.parse(files[f"{DEBUGFS}/osc/{osc.name}/rpc_stats"])
            assert read.skipped == 0
            assert (read.read_in_flight, read.write_in_flight) == tuple(osc.in_flight)
            assert (read.pending_read_pages, read.pending_write_pages) == osc.pages_waiting
            for got, name in (
                (read.pages_per_rpc, "pages"), (read.offset, "offset"), (read.rpcs_in_flight, "in_flight"),
                (read.latency_usec, "latency"),
            ):  # fmt: skip
                for direction, side in enumerate(osc.histograms):
                    model: Histogram = getattr(side, name)
                    counts = [] if got is None else [n for n in got.columns[direction] if n]
                    assert counts == nonzero(model), (osc.name, name)


def disks(cluster: Cluster, files: dict[str, bytes]) -> None:
    """Every table of every disk."""
    for ost in cluster.osts:
        read = brw_stats.parse(files[f"{DEBUGFS}/osd-ldiskfs/{ost.name}/brw_stats"])
        assert read.skipped == 0
        for histogram in read.histograms:
            title = histogram.name.decode()
            model = next(side for name, side in ost.bulk.brw.sides[True].items() if name.startswith(title))
            assert [n for n in histogram.columns[1] if n] == nonzero(model)
