"""A client: the mount point of each instance, sums over the targets of a pool, states. See also test_golden."""

import pytest

from tests.exporter.collectors.families import DEBUG, MOUNT, shown

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


def in_flight(reads: dict[int, int]) -> str:
    """``rpc_stats`` of a client that had so many requests under way when it sent a read."""
    rows, counted, total = "", 0, sum(reads.values())
    for number in range(1, max(reads) + 1):
        counted += reads.get(number, 0)
        share = 100 * reads.get(number, 0) // total
        rows += f"{number}:\t\t{reads.get(number, 0):10} {share:3} {100 * counted // total:3}   |          0   0   0\n"
    return (
        "snapshot_time:         9.5 (secs.nsecs)\nread RPCs in flight:  0\nwrite RPCs in flight: 0\n"
        "pending write pages:  0\npending read pages:   0\n\n\t\t\tread\t\t\twrite\n"
        f"rpcs in flight        rpcs   % cum % |       rpcs   % cum %\n{rows}"
    )


@pytest.mark.parametrize("per_target", [False, True])
def test_clients_that_send_many_requests_at_once_add_up_with_those_that_send_few(
        grow, exporter, samples, per_target) -> None:
    """The kernel's 31st bucket counts all that is more."""
    reads = {"OST0000": {1: 5, 17: 4}, "OST0001": {2: 7}, "OST0002": {1: 1, 30: 2, 31: 8}}
    files = {f"{DEBUG}/osc/lustre-{target}-osc-{MOUNT}/rpc_stats": in_flight(of) for target, of in reads.items()}
    running = exporter(grow(files), osc_per_target=per_target)
    sums: dict[float, int] = {}
    name, labels = "lustre_osc_rpcs_in_flight_at_send_bucket", ("direction", "le") + ("target",) * per_target
    for key, value in shown(samples, running.scrape("osc"), name, *labels).items():
        if key[0] == "read":
            sums[float(key[1])] = sums.get(float(key[1]), 0) + int(value)
    numbers = [n for of in reads.values() for number, times in of.items() for n in [number] * times]
    assert sums == {
        **{float(le): sum(number <= le for number in numbers) for le in range(1, 31)},
        float("inf"): len(numbers),
    }
    assert running.skipped() == {}


@pytest.mark.parametrize("per_target", [False, True])
def test_a_state_with_characters_of_templates_is_shown_as_it_is(grow, exporter, per_target) -> None:
    text = "import:\n    state: FU\x1eL\x19\n       timeouts: 3\n"
    running = exporter(grow({f"{DEBUG}/osc/lustre-OST0000-osc-{MOUNT}/import": text}), osc_per_target=per_target)
    shown = running.scrape("osc")
    assert b',state="FU\x1eL\x19"} 1\n' in shown
    assert (shown.count(b"\nlustre_osc_import_timeouts_total{"), running.skipped()) == (1, {})
