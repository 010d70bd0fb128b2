"""The mount point of each client instance. Those of a tape are in test_golden."""

import pytest

from tests.exporter.collectors.families import shown

LLITE = "sys/kernel/debug/lustre/llite"
OLDER, YOUNGER = "ffff9f0a8c3d1800", "ffff9f0a00000000"


def stats(start: str, reads: int = 1) -> str:
    times = f"snapshot_time 9.5 secs.nsecs\nstart_time {start} secs.nsecs\nelapsed_time 1.0 secs.nsecs\n"
    return f"{times if start else ''}read_bytes {reads} samples [bytes] 1 1 {reads} 1\n"


def reads(samples, text: bytes) -> dict[str, str]:
    """{mount: bytes read}."""
    return shown(samples, text, "lustre_llite_read_bytes_total", "mount")


BIND = ("10.0.0.1@tcp:10.0.0.2@tcp:/fs-1/home /a\\040b lustre rw 0 0\nmgs@tcp:/fs-1 /bind lustre rw 0 0\n"
        "/dev/sda /mnt/ost lustre ro 0 0\nmgs@tcp:/other /other lustre rw 0 0\n")  # fmt: skip
TWO = "m@tcp:/lustre /a lustre rw 0 0\nm@tcp:/lustre /b lustre rw 0 0\n"
OF_HOST = {"proc/mounts": "overlay / overlay rw 0 0\n", "proc/1/mounts": "m@tcp:/lustre /host/lustre lustre rw 0 0\n"}


@pytest.mark.parametrize(("starts", "lists", "expected"), [
    pytest.param({f"fs-1-{OLDER}": ""}, {"proc/mounts": BIND}, {"/a b": "1"}, id="one needs no age, and no bind mount"),
    pytest.param({f"lustre-{OLDER}": "5.0"}, {}, {"": "1"}, id="without a list one is nameless"),
    pytest.param({f"lustre-{OLDER}": "5.0", f"lustre-{YOUNGER}": "7.0"}, {}, {"1": "1", "2": "2"},
                 id="without a list several are numbered by age"),
    pytest.param({f"lustre-{OLDER}": "", f"lustre-{YOUNGER}": ""}, {"proc/mounts": TWO}, {"1": "2", "2": "1"},
                 id="without start times no mount point is guessed"),
    pytest.param({f"lustre-{OLDER}": "5.0"}, OF_HOST, {"/host/lustre": "1"}, id="a container has those of its host"),
])
def test_a_mount_point_is_known_or_not_guessed(grow, exporter, samples, starts, lists, expected) -> None:
    files = {f"{LLITE}/{name}/stats": stats(start, number) for number, (name, start) in enumerate(starts.items(), 1)}
    assert reads(samples, exporter(grow(files | lists)).scrape()) == expected


def test_a_mount_that_begins_or_ends_changes_no_other(grow, exporter, samples) -> None:
    older, younger = (f"{LLITE}/lustre-{instance}/stats" for instance in (OLDER, YOUNGER))
    requests = f"sys/kernel/debug/lustre/osc/lustre-OST0000-osc-{OLDER}/stats"
    one = TWO.splitlines()[0] + "\n"
    running = exporter(grow({older: stats("5.0"), requests: stats("5.0"), "proc/mounts": one}))
    running.scrape()
    grow({younger: stats("7.0", 50)})
    for number, (mounts, others) in enumerate([
        (one, {"2": "50"}),  # the second one is listed when its mount ends
        (TWO, {"/b": "50"}),
        (f"{TWO}m@tcp:/lustre /bind lustre rw 0 0\n", {"/b": "50"}),
        (one, {"2": "50"}),  # and is no longer listed as soon as its unmount begins
    ], 100):
        grow({"proc/mounts": mounts, requests: stats("5.0", number)})
        text = running.scrape()
        assert reads(samples, text) == {"/a": "1", **others}
        assert shown(samples, text, "lustre_osc_read_bytes_total", "mount") == {"/a": str(number)}


def test_a_cleared_file_does_not_swap_the_mounts(grow, exporter, samples) -> None:
    root = grow({
        f"{LLITE}/lustre-{OLDER}/stats": stats("5.0", 1), f"{LLITE}/lustre-{YOUNGER}/stats": stats("7.0", 2),
        "proc/self/mounts": TWO,
    })  # fmt: skip
    running = exporter(root)
    assert reads(samples, running.scrape()) == {"/a": "1", "/b": "2"}
    grow({f"{LLITE}/lustre-{OLDER}/stats": stats("900.0", 3)})
    assert reads(samples, running.scrape()) == {"/a": "3", "/b": "2"}
