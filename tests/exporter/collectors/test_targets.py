"""Targets of a server: their disks, their room, their clients, their recovery."""

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
