"""Clients without bulk RPCs: their ``rpc_stats`` is read less often, and nothing is missed."""

import pytest

from exporter.connections import MAX_QUIET_PASSES

OSC = "sys/kernel/debug/lustre/osc/lustre-OST0000-osc-ff1100011d6c9800"
MOUNT = {"proc/mounts": "m@tcp:/lustre /mnt lustre rw 0 0\n"}
HEADING = "\n\t\t\tread\t\t\twrite\npages per rpc         rpcs   % cum % |       rpcs   % cum %\n"


def stats(reads: int, pings: int = 1) -> str:
    return (f"snapshot_time 9.5 secs.nsecs\nstart_time 5.0 secs.nsecs\n"
            f"read_bytes {reads} samples [bytes] 1 1 {reads} 1\nping {pings} samples [usecs] 1 1 1 1\n")  # fmt: skip


def rpc_stats(count: int, in_flight: int = 0) -> str:
    return (f"snapshot_time:         9.5 secs.nsecs\nread RPCs in flight:  {in_flight}\n{HEADING}"
            f"1:\t\t{count} 100 100   |          0   0   0\n\n")  # fmt: skip


def shown(text: bytes, name: bytes) -> str:
    lines = [line for line in text.splitlines() if line.startswith(name) and b'"read"' in line]
    found = {line.rpartition(b" ")[2].decode() for line in lines}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("per_target", [True, False])
def test_every_bulk_rpc_is_seen_in_the_same_pass(grow, exporter, per_target) -> None:
    running = exporter(grow({f"{OSC}/stats": stats(1), f"{OSC}/rpc_stats": rpc_stats(1), **MOUNT}),
                       osc_per_target=per_target)  # fmt: skip
    running.scrape("osc")
    for count in range(2, 12):
        grow({f"{OSC}/stats": stats(count // 2, count), f"{OSC}/rpc_stats": rpc_stats(count // 2)})
        running.scrape("pools")  # reads stats, but not rpc_stats
        assert shown(running.scrape("osc"), b"lustre_osc_pages_per_rpc_bucket") == str(count // 2)


@pytest.mark.parametrize("per_target", [True, False])
def test_a_quiet_client_is_read_now_and_then_and_a_busy_one_always(grow, exporter, per_target) -> None:
    running = exporter(grow({f"{OSC}/stats": stats(1), f"{OSC}/rpc_stats": rpc_stats(1), **MOUNT}),
                       osc_per_target=per_target)  # fmt: skip
    for pings in range(2 * MAX_QUIET_PASSES):
        grow({f"{OSC}/stats": stats(1, pings)})
        running.scrape("osc")
    grow({f"{OSC}/rpc_stats": rpc_stats(1, in_flight=3)})  # without an answer
    seen = [shown(running.scrape("osc"), b"lustre_osc_rpcs_in_flight{") for _ in range(MAX_QUIET_PASSES)]
    assert seen[-1] == "3"
    assert "0" in seen
    grow({f"{OSC}/rpc_stats": rpc_stats(1, in_flight=5)})
    assert shown(running.scrape("osc"), b"lustre_osc_rpcs_in_flight{") == "5"
