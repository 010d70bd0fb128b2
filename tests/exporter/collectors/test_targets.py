"""Targets of a server: their disks, their room, their clients."""

from __future__ import annotations

from tests.exporter.collectors.families import DEBUG, SYSFS, shown


def test_all_targets_have_the_same_buckets(grow, exporter, samples) -> None:
    table = (
        "snapshot_time:   9.5 secs.nsecs\n\n                           read      |     write\n"
        "disk I/O size          ios   % cum % |  ios         % cum %\n{}:\t\t         1 100 100   |   50 100 100\n"
    )
    root = grow({
        f"{DEBUG}/osd-ldiskfs/lustre-OST000{i}/brw_stats": table.format(size) for i, size in enumerate(("4K", "32K"))
    })  # fmt: skip
    text = exporter(root).scrape()
    found = shown(samples, text, "lustre_osd_io_size_bytes_bucket", "target", "direction", "le")
    sizes = [f"{4096.0 * 2**power}" for power in range(13)]
    assert found == {
        (target, direction, le): str(count if le == "+Inf" or float(le) >= largest else 0)
        for target, largest in (("OST0000", 4096), ("OST0001", 32768))
        for direction, count in (("read", 1), ("write", 50))
        for le in (*sizes, "+Inf")
    }


def test_a_client_that_is_gone_has_no_series(grow, exporter, samples) -> None:
    exports = "proc/fs/lustre/obdfilter/lustre-OST0000/exports"
    line = "snapshot_time 9.5 secs.nsecs\nread_bytes 3 samples [bytes] 1 1 {} 9\n"
    root = grow({f"{exports}/10.0.0.{i}@tcp/stats": line.format(i) for i in (1, 2)})
    running = exporter(root)
    name = "lustre_ost_client_read_bytes_total"
    assert shown(samples, running.scrape(), name, "nid") == {"10.0.0.1@tcp": "1", "10.0.0.2@tcp": "2"}
    (root / exports / "10.0.0.1@tcp/stats").unlink()
    (root / exports / "10.0.0.1@tcp").rmdir()
    assert shown(samples, running.scrape(), name, "nid") == {"10.0.0.2@tcp": "2"}


def test_room_that_wrapped_is_no_room(grow, exporter, samples) -> None:
    numbers = {"kbytestotal": 1000, "kbytesfree": -5, "kbytesavail": -9, "tot_granted": -1, "num_exports": 3}
    root = grow({f"{SYSFS}/obdfilter/lustre-OST0000/{name}": f"{value}\n" for name, value in numbers.items()})
    running = exporter(root)
    shown_names = {name for name, _ in samples(running.scrape("ost"))}
    assert shown_names == {"lustre_ost_size_bytes", "lustre_ost_exports"}
    assert set(running.skipped()) == {f"obdfilter.*.{name}" for name in ("kbytesfree", "kbytesavail", "tot_granted")}
