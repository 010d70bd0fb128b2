"""Targets of a server: their disks, their room, their clients, their recovery."""

from __future__ import annotations

import pytest

from tests.exporter.collectors.families import DEBUG, SYSFS, shown


def test_a_departed_client_has_no_series(grow, exporter, samples) -> None:
    exports = "proc/fs/lustre/obdfilter/lustre-OST0000/exports"
    line = "snapshot_time 9.5 secs.nsecs\nread_bytes 3 samples [bytes] 1 1 {} 9\n"
    root = grow({f"{exports}/10.0.0.{i}@tcp/stats": line.format(i) for i in (1, 2)})
    running = exporter(root)
    name = "lustre_ost_client_read_bytes_total"
    assert shown(samples, running.scrape(), name, "nid") == {"10.0.0.1@tcp": "1", "10.0.0.2@tcp": "2"}
    (root / exports / "10.0.0.1@tcp/stats").unlink()
    (root / exports / "10.0.0.1@tcp").rmdir()
    assert shown(samples, running.scrape(), name, "nid") == {"10.0.0.2@tcp": "2"}


def test_duration_of_disk_io_by_size(grow, exporter, samples) -> None:
    """The form of ``io_latency_stats_seq_show`` (lprocfs_status_server.c): sizes that did not occur have no line."""
    text = (
        "io_latency_by_size:\nsnapshot_time: 1795218507.159951195 secs.nsecs\nstart_time:    1795217463.1 secs.nsecs\n"
        "elapsed_time:  1044.014725825 secs.nsecs\nrd_4K: { 0us: 9, 512us: 3, }\nrd_8K: { uninit }\n"
        "wr_1024K: { 8192us: 2, }\n"
    )
    found = shown(samples, exporter(grow({f"{DEBUG}/osd-ldiskfs/lustre-OST0000/io_latency_stats": text})).scrape(),
                  "lustre_osd_io_latency_seconds_bucket", "direction", "size", "le")  # fmt: skip
    assert {(direction, size) for direction, size, _ in found} == {("read", "4096"), ("write", "1048576")}
    assert found["read", "4096", "1.024e-06"] == "9"
    assert found["read", "4096", "0.000524288"] == "9"
    assert found["read", "4096", "0.001048576"] == "12"
    assert (found["write", "1048576", "0.008388608"], found["write", "1048576", "0.016777216"]) == ("0", "2")


@pytest.mark.parametrize(("status", "recovering"), [
    ("INACTIVE", "0"), ("COMPLETE", "0"), ("RECOVERING", "1"), ("WAITING_FOR_CLIENTS", "1"), ("WAITING", "1"),
    ("NONSENSE", "1"),
])  # fmt: skip
def test_only_a_target_that_says_so_is_done_with_recovery(grow, exporter, samples, status, recovering) -> None:
    root = grow({
        f"{DEBUG}/obdfilter/lustre-OST0000/recovery_status": f"status: {status}\n",
        f"{DEBUG}/mdt/lustre-MDT0000/recovery_status": f"status: {status}\n",
    })  # fmt: skip
    text = exporter(root).scrape()
    assert shown(samples, text, "lustre_ost_recovering", "target") == {"OST0000": recovering}
    assert shown(samples, text, "lustre_mdt_recovering", "target") == {"MDT0000": recovering}


def test_a_status_that_cannot_be_read_is_recovery_and_is_counted(grow, exporter, samples) -> None:
    running = exporter(grow({f"{DEBUG}/obdfilter/lustre-OST0000/recovery_status": "status: COMPL"}))
    assert shown(samples, running.scrape(), "lustre_ost_recovering", "target") == {"OST0000": "1"}
    assert running.skipped()["obdfilter.*.recovery_status"] > 0


def test_a_status_that_is_absent_says_nothing(grow, exporter) -> None:
    assert b"recovering" not in exporter(grow({f"{SYSFS}/obdfilter/lustre-OST0000/degraded": "0\n"})).scrape()
