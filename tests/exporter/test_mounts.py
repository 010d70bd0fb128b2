"""The mount point of each client instance, compared with the tapes."""

from __future__ import annotations

from pathlib import Path

import pytest

LLITE = "sys/kernel/debug/lustre/llite"
TAPES = sorted(path.parent.name for path in (Path(__file__).parent.parent / "tapes").glob("*/tape.json"))
OLDER, YOUNGER = "ffff9f0a8c3d1800", "ffff9f0a00000000"


def stats(start: str, reads: int = 1) -> str:
    times = f"snapshot_time 9.5 secs.nsecs\nstart_time {start} secs.nsecs\nelapsed_time 1.0 secs.nsecs\n"
    return f"{times if start else ''}read_bytes {reads} samples [bytes] 1 1 {reads} 1\n"


def reads(samples, text: bytes) -> dict[str, str]:
    """{mount: bytes read}."""
    found = samples(text).items()
    return {dict(labels)["mount"]: value for (name, labels), value in found if name == "lustre_llite_read_bytes_total"}


@pytest.mark.parametrize("name", TAPES)
def test_the_mounts_of_a_tape(snapshots, exporter, samples, name) -> None:
    tape = snapshots(name, 5)
    root = tape.snapshot(5)
    expected = {}
    for mount in tape.about["mounts"].values():
        for line in (root / LLITE / mount["llite"] / "stats").read_text().splitlines():
            if line.startswith("write_bytes"):
                expected[mount["path"]] = line.split()[6]
    shown = samples(exporter(root).scrape("llite"))
    writes = {dict(labels)["mount"]: v for (n, labels), v in shown.items() if n == "lustre_llite_write_bytes_total"}
    assert len(expected) > 0
    assert writes == expected


def test_a_single_mount_needs_no_age_and_ignores_bind_mounts(grow, exporter, samples) -> None:
    root = grow({
        f"{LLITE}/fs-1-{OLDER}/stats": stats(""),
        "proc/mounts": "10.0.0.1@tcp:10.0.0.2@tcp:/fs-1/home /a\\040b lustre rw 0 0\n"
        "mgs@tcp:/fs-1 /bind lustre rw 0 0\n"
        "/dev/sda /mnt/ost lustre ro 0 0\nmgs@tcp:/other /other lustre rw 0 0\n",
    })  # fmt: skip
    assert reads(samples, exporter(root).scrape()) == {"/a b": "1"}


def test_without_a_list_of_mounts_a_single_one_is_nameless(grow, exporter, samples) -> None:
    assert reads(samples, exporter(grow({f"{LLITE}/lustre-{OLDER}/stats": stats("5.0")})).scrape()) == {"": "1"}


def test_without_a_list_of_mounts_several_are_numbered_by_age(grow, exporter, samples) -> None:
    root = grow({f"{LLITE}/lustre-{OLDER}/stats": stats("5.0", 1), f"{LLITE}/lustre-{YOUNGER}/stats": stats("7.0", 2)})
    assert reads(samples, exporter(root).scrape()) == {"1": "1", "2": "2"}


def test_no_mount_point_is_guessed_without_start_times(grow, exporter, samples) -> None:
    root = grow({
        f"{LLITE}/lustre-{OLDER}/stats": stats("", 1), f"{LLITE}/lustre-{YOUNGER}/stats": stats("", 2),
        "proc/mounts": "m@tcp:/lustre /a lustre rw 0 0\nm@tcp:/lustre /b lustre rw 0 0\n",
    })  # fmt: skip
    assert reads(samples, exporter(root).scrape()) == {"1": "2", "2": "1"}


def test_a_cleared_file_does_not_swap_the_mounts(grow, exporter, samples) -> None:
    root = grow({
        f"{LLITE}/lustre-{OLDER}/stats": stats("5.0", 1), f"{LLITE}/lustre-{YOUNGER}/stats": stats("7.0", 2),
        "proc/self/mounts": "m@tcp:/lustre /a lustre rw 0 0\nm@tcp:/lustre /b lustre rw 0 0\n",
    })  # fmt: skip
    running = exporter(root)
    assert reads(samples, running.scrape()) == {"/a": "1", "/b": "2"}
    grow({f"{LLITE}/lustre-{OLDER}/stats": stats("900.0", 3)})
    assert reads(samples, running.scrape()) == {"/a": "3", "/b": "2"}


def test_a_container_finds_the_mounts_of_its_host(grow, exporter, samples) -> None:
    root = grow({
        f"{LLITE}/lustre-{OLDER}/stats": stats("5.0"),
        "proc/mounts": "overlay / overlay rw 0 0\n",
        "proc/1/mounts": "m@tcp:/lustre /host/lustre lustre rw 0 0\n",
    })  # fmt: skip
    assert reads(samples, exporter(root).scrape()) == {"/host/lustre": "1"}
