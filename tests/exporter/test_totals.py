"""Sums by pool: over time, over pools that overlap, over targets that come and go, over clients that are quiet."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.connections import MAX_QUIET_PASSES
from exporter.exposition import Histogram, doubling
from tests.exporter.collectors.families import shown

A, B = "ffff9f0a8c3d1800", "ffff9f0a00000000"
POOLS = "proc/fs/lustre/lov/lustre-clilov-{}/pools"


def osc(target: str, instance: str = A) -> str:
    return f"sys/kernel/debug/lustre/osc/lustre-{target}-osc-{instance}/stats"


def stats(read: int, start: int = 5) -> str:
    return (
        f"snapshot_time 9.5 secs.nsecs\nstart_time {start}.0 secs.nsecs\nelapsed_time 1.0 secs.nsecs\n"
        f"req_waittime 3 samples [usecs] 1 1 1500000 1\nread_bytes 3 samples [bytes] 1 1 {read} 1\n"
    )


def pool(*targets: str) -> str:
    return "".join(f"lustre-{target}_UUID\n" for target in targets)


def reads(samples, text: bytes) -> tuple[dict[str, str], dict[str, str]]:
    osc, pools = (shown(samples, text, f"lustre_{what}_read_bytes_total", "pool") for what in ("osc", "pool"))
    return osc, pools


def test_a_target_in_two_pools_counts_in_each_pool_and_once_in_osc(grow, exporter, samples) -> None:
    lists = POOLS.format(A)
    root = grow({
        osc("OST0000"): stats(1), osc("OST0001"): stats(10), osc("OST0002"): stats(100), osc("OST0003"): stats(1000),
        f"{lists}/a": pool("OST0000", "OST0001"), f"{lists}/b": pool("OST0001", "OST0002"), f"{lists}/empty": "",
    })  # fmt: skip
    text = exporter(root).scrape()
    of_osc = {"a": "1", "a,b": "10", "b": "100", "": "1000"}
    assert reads(samples, text) == (of_osc, {"a": "11", "b": "110", "": "1000"})
    assert shown(samples, text, "lustre_osc_request_wait_seconds_total", "pool")["a"] == "1.500000"
    assert shown(samples, text, "lustre_pool_targets", "pool") == {"a": "2", "b": "2", "empty": "0", "": "1"}


def test_a_pool_that_gains_a_target_does_not_jump(grow, exporter, samples) -> None:
    lists = POOLS.format(A)
    root = grow({osc("OST0000"): stats(1000), osc("OST0001"): stats(5), f"{lists}/a": pool("OST0001")})
    running = exporter(root)
    assert reads(samples, running.scrape())[1] == {"a": "5", "": "1000"}
    grow({osc("OST0000"): stats(1003), f"{lists}/a": pool("OST0000", "OST0001")})
    assert reads(samples, running.scrape())[1] == {"a": "8"}
    grow({osc("OST0000"): stats(1004), f"{lists}/a": pool("OST0001")})
    assert reads(samples, running.scrape())[1] == {"a": "8", "": "1001"}


def test_overlap_that_ends_keeps_its_part_in_both_pools(grow, exporter, samples) -> None:
    lists = POOLS.format(A)
    root = grow({osc("OST0000"): stats(10), osc("OST0001"): stats(1), f"{lists}/a": pool("OST0000", "OST0001"),
                 f"{lists}/b": pool("OST0000", "OST0001")})  # fmt: skip
    running = exporter(root)
    assert reads(samples, running.scrape())[1] == {"a": "11", "b": "11"}
    grow({osc("OST0000"): stats(12), f"{lists}/a": pool("OST0000"), f"{lists}/b": pool("OST0001")})
    assert reads(samples, running.scrape())[1] == {"a": "13", "b": "11"}


def test_a_remount_adds_to_the_sum(grow, exporter, samples) -> None:
    running = exporter(grow({osc("OST0000"): stats(100), "proc/mounts": "m@tcp:/lustre /mnt lustre rw 0 0\n"}))
    assert reads(samples, running.scrape())[0] == {"": "100"}
    grow({osc("OST0000").removesuffix("/stats"): None})
    assert reads(samples, running.scrape())[0] == {}
    grow({osc("OST0000", B): stats(7, start=99)})
    assert reads(samples, running.scrape())[0] == {"": "107"}


def test_a_target_of_a_server_is_not_a_client(grow, exporter) -> None:
    root = grow({"proc/fs/lustre/osc/lustre-OST0000-osc-MDT0000/stats": stats(1)})
    assert b"lustre_osc" not in exporter(root).scrape()


def test_idle_connections_are_left_alone(grow, exporter, samples) -> None:
    """A read of ``kbytesfree`` sends a request, which connects an idle client again."""
    room = {"kbytestotal": 10, "kbytesfree": 5, "kbytesavail": 4, "filestotal": 3, "filesfree": 2}
    folder = f"sys/fs/lustre/osc/lustre-{{}}-osc-{A}"
    link = "import:\n    name: lustre-{}-osc\n    target: lustre-{}_UUID\n    state: {}\n    connect_flags: [ ]\n"

    def grown(of_first: str) -> Path:
        unread = of_first == "IDLE"  # what nobody may read then is no number
        numbers = {name: "x" if unread else value for name, value in room.items()}
        return grow({
            **{f"{folder.format(ost)}/{name}": f"{value}\n" for ost, of_ost in
               (("OST0000", numbers), ("OST0001", room), ("OST0002", room)) for name, value in of_ost.items()},
            **{f"proc/fs/lustre/osc/lustre-{ost}-osc-{A}/import": link.format(ost, ost, state)
               for ost, state in (("OST0000", of_first), ("OST0001", "FULL"), ("OST0002", "FULL"))},
            **{f"sys/fs/lustre/llite/lustre-{A}/{name}": f"{value}\n" for name, value in numbers.items()},
            f"{POOLS.format(A)}/a": pool("OST0000", "OST0001"), f"{POOLS.format(A)}/b": pool("OST0002"),
            "proc/mounts": "m@tcp:/lustre /mnt lustre rw 0 0\n",
        })  # fmt: skip

    running = exporter(grown("FULL"))
    text = running.scrape()
    assert shown(samples, text, "lustre_pool_size_bytes", "pool") == {"a": "20480", "b": "10240"}
    assert b"lustre_filesystem_size_bytes" in text
    grown("IDLE")
    text = running.scrape()
    assert shown(samples, text, "lustre_pool_size_bytes", "pool") == {"b": "10240"}
    assert shown(samples, text, "lustre_pool_targets_reporting", "pool") == {"a": "1", "b": "1"}
    assert b"lustre_filesystem_" not in text
    assert running.skipped() == {}
    grown("FULL")
    assert shown(samples, running.scrape(), "lustre_pool_size_bytes", "pool") == {"a": "20480", "b": "10240"}


def test_per_target_shows_the_file_as_it_is(grow, exporter, samples) -> None:
    running = exporter(grow({osc("OST0000"): stats(100)}), osc_per_target=True)
    running.scrape()
    grow({osc("OST0000"): stats(4, start=8)})
    text = running.scrape()
    assert reads(samples, text) == ({"": "4"}, {"": "104"})
    assert b'lustre_osc_read_bytes_total{fs="lustre",mount="",target="OST0000",pool=""} 4\n' in text


@given(st.lists(st.integers(0, 1000), max_size=20), st.integers(0, 24))
def test_a_continued_table_counts_the_same(counts: list[int], usual: int) -> None:
    family = Histogram("lustre_a_seconds", "A.", ("fs",), "a", usual=doubling(1, 1 << usual))
    lines = family.buckets(b'fs="a"', [float(1 << power) for power in range(len(counts))], counts).splitlines()
    shown = [(float(line.split(b'le="')[1].split(b'"')[0]), int(line.rsplit(b" ")[-1])) for line in lines]
    bounds, totals = [bound for bound, _ in shown], [total for _, total in shown]
    assert bounds == [*[float(1 << power) for power in range(max(len(counts), usual + 1))], math.inf]
    assert totals == [sum(counts[: i + 1]) for i in range(len(totals))]


@pytest.mark.parametrize("nonsense", [(1 << 64) - 1, (1 << 64) + 5, 1 << 63, 1 << 55])
def test_a_bucket_of_nonsense_does_not_stay_in_a_sum(grow, exporter, samples, nonsense) -> None:
    running = exporter(grow({f"{OSC}/rpc_stats": rpc_stats(10), **MOUNT}))
    for count, total in ((10, "10"), (nonsense, "10"), (15, "15")):
        grow({f"{OSC}/rpc_stats": rpc_stats(count)})
        found = shown(samples, running.scrape("osc"), "lustre_osc_pages_per_rpc_bucket", "direction", "le")
        assert {value for (direction, _), value in found.items() if direction == "read"} == {total}


OSC = "sys/kernel/debug/lustre/osc/lustre-OST0000-osc-ff1100011d6c9800"
MOUNT = {"proc/mounts": "m@tcp:/lustre /mnt lustre rw 0 0\n"}
HEADING = "\n\t\t\tread\t\t\twrite\npages per rpc         rpcs   % cum % |       rpcs   % cum %\n"


def busy_stats(reads: int, pings: int = 1) -> str:
    return (f"snapshot_time 9.5 secs.nsecs\nstart_time 5.0 secs.nsecs\n"
            f"read_bytes {reads} samples [bytes] 1 1 {reads} 1\nping {pings} samples [usecs] 1 1 1 1\n")  # fmt: skip


def rpc_stats(count: int, in_flight: int = 0) -> str:
    return (f"snapshot_time:         9.5 secs.nsecs\nread RPCs in flight:  {in_flight}\n{HEADING}"
            f"1:\t\t{count} 100 100   |          0   0   0\n\n")  # fmt: skip


def of_reads(text: bytes, name: bytes) -> str:
    lines = [line for line in text.splitlines() if line.startswith(name) and b'"read"' in line]
    found = {line.rpartition(b" ")[2].decode() for line in lines}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("per_target", [True, False])
def test_every_bulk_rpc_is_seen_in_the_same_pass(grow, exporter, per_target) -> None:
    running = exporter(grow({f"{OSC}/stats": busy_stats(1), f"{OSC}/rpc_stats": rpc_stats(1), **MOUNT}),
                       osc_per_target=per_target)  # fmt: skip
    running.scrape("osc")
    for count in range(2, 12):
        grow({f"{OSC}/stats": busy_stats(count // 2, count), f"{OSC}/rpc_stats": rpc_stats(count // 2)})
        running.scrape("pools")  # reads stats, but not rpc_stats
        assert of_reads(running.scrape("osc"), b"lustre_osc_pages_per_rpc_bucket") == str(count // 2)


@pytest.mark.parametrize("per_target", [True, False])
def test_a_quiet_client_is_read_now_and_then_and_a_busy_one_always(grow, exporter, per_target) -> None:
    running = exporter(grow({f"{OSC}/stats": busy_stats(1), f"{OSC}/rpc_stats": rpc_stats(1), **MOUNT}),
                       osc_per_target=per_target)  # fmt: skip
    for pings in range(2 * MAX_QUIET_PASSES):
        grow({f"{OSC}/stats": busy_stats(1, pings)})
        running.scrape("osc")
    grow({f"{OSC}/rpc_stats": rpc_stats(1, in_flight=3)})  # without an answer
    seen = [of_reads(running.scrape("osc"), b"lustre_osc_rpcs_in_flight{") for _ in range(MAX_QUIET_PASSES)]
    assert seen[-1] == "3"
    assert "0" in seen
    grow({f"{OSC}/rpc_stats": rpc_stats(1, in_flight=5)})
    assert of_reads(running.scrape("osc"), b"lustre_osc_rpcs_in_flight{") == "5"
