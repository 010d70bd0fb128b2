"""Faults and events, and what the parameter files and the port show then."""

import errno
from pathlib import Path

import pytest

from lustre.changelog.record import RecordType, decode
from simulator.cluster import Cluster
from simulator.costs import CallCosts
from simulator.filesystem import SimulatedFilesystem
from simulator.fluid.cluster import FluidCluster
from simulator.jobs.large_files import StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.parameters import render, write_parameters
from simulator.scenarios.events import Event, schedule
from simulator.settings import recorded_test_bed

STREAM = "ior_stream.1002"
def cluster(*events: Event, noise: bool = False, model: type[Cluster] = Cluster) -> Cluster:
    jobs = (StreamingWriter(), SmallFileWriter()) if noise else (StreamingWriter(),)
    made = model(recorded_test_bed(), jobs)
    schedule(events, made)
    return made


def text(of: Cluster, path: str) -> str:
    return render(of)[path].decode()


def test_a_degraded_target_says_so_and_gets_no_new_files_while_others_have_room() -> None:
    made = cluster(Event(2, "degraded", {"target": "OST0003", "rebuild_share": 0.5}), noise=True)
    made.advance(3)
    before = made.osts[3].store.created
    made.advance(7)
    assert made.log.mean(STREAM, 4, 10) < 0.7 * 66
    assert made.osts[3].store.created == before
    assert text(made, "sys/fs/lustre/obdfilter/lustre-OST0003/degraded") == "1\n"
    Event(0, "healthy", {"target": "OST0003"})(made)
    assert text(made, "sys/fs/lustre/obdfilter/lustre-OST0003/degraded") == "0\n"


def test_a_full_target_shows_no_room_and_takes_no_new_files() -> None:
    made = cluster(Event(2, "full", {"target": "OST0002", "free_percent": 0.1}), noise=True)
    made.advance(4)
    created = made.osts[2].store.created
    made.advance(4)
    assert made.osts[2].store.created == created
    assert int(text(made, "sys/fs/lustre/obdfilter/lustre-OST0002/kbytesavail")) < 2100


@pytest.mark.parametrize("model", [Cluster, FluidCluster])
def test_without_its_mdt_nobody_creates_files(model: type[Cluster]) -> None:
    made = cluster(Event(5, "failover", {"target": "MDT0000", "seconds": 3.0}), noise=True, model=model)
    made.advance(20)
    assert made.log.mean("mdt_small.1001", 7, 10) == 0
    assert made.log.mean("mdt_small.1001", 14, 20) > 15


def test_without_a_user_nothing_is_recorded_and_reading_continues() -> None:
    made = cluster(Event(5, "changelog_deregistered", {"target": "MDT0000"}), noise=True)
    made.advance(6)
    log, port = made.mdts[0].changelog, SimulatedFilesystem(made)
    end = log.last_index
    made.advance(3)
    assert end == log.last_index > 0
    assert port.changelog("MDT0000", 0) == b"", "as an empty log is read: no error"
    assert "cl1" not in text(made, "sys/kernel/debug/lustre/mdd/lustre-MDT0000/changelog_users")
    with pytest.raises(OSError, match="cl1") as failure:
        port.clear_changelog("MDT0000", "cl1", end)
    assert failure.value.errno == errno.ENOENT
    log.register()
    made.advance(3)
    records, _ = decode(port.changelog("MDT0000", 0))
    assert records[0].index == end + 1, "the numbers show no gap"


def test_records_flow_for_another_user_and_those_of_a_user_are_kept() -> None:
    made = cluster(Event(5, "changelog_deregistered", {"target": "MDT0000"}), noise=True)
    log, port = made.mdts[0].changelog, SimulatedFilesystem(made)
    made.advance(2)
    needed = log.last_index
    log.register()
    made.advance(4)
    records, _ = decode(port.changelog("MDT0000", 0))
    assert records[0].index == needed + 1
    port.clear_changelog("MDT0000", "cl2", log.last_index)
    assert port.changelog("MDT0000", 0) == b""
    with pytest.raises(OSError, match="Invalid argument"):
        port.clear_changelog("MDT0000", "cl2", log.last_index + 1)


def test_a_mask_leaves_its_records_out() -> None:
    made = cluster(noise=True)
    log = made.mdts[0].changelog
    log.set_mask({*log.mask} - {RecordType.CREATE})
    made.advance(3)
    records, _ = decode(SimulatedFilesystem(made).changelog("MDT0000", 0))
    kinds = {record.type for record in records}
    assert RecordType.CLOSE in kinds
    assert RecordType.CREATE not in kinds
    assert "CREAT" not in text(made, "sys/kernel/debug/lustre/mdd/lustre-MDT0000/changelog_mask").split()


def test_opening_a_changelog_walks_what_no_user_has_cleared() -> None:
    made = cluster(noise=True)
    made.advance(10)
    port = SimulatedFilesystem(made, costs=CallCosts(kept_record_seconds=0.001))
    last = made.mdts[0].changelog.last_index

    def seconds(after: int) -> float:
        begun = made.now
        port.changelog("MDT0000", after)
        return made.now - begun

    assert seconds(last) == pytest.approx(0.001 * last)
    port.clear_changelog("MDT0000", "cl1", last)
    assert seconds(last) < 0.01 * last * 0.001 + 0.001 * (made.mdts[0].changelog.last_index - last)
    assert made.mdts[0].changelog.walked(10 * 64_767) <= 64_767


def test_an_exporter_nobody_reaches_leaves_the_files_as_they_were(tmp_path: Path) -> None:
    made = cluster(Event(5, "exporter_unreachable", {"seconds": 10.0}))
    made.advance(4)
    assert write_parameters(made, tmp_path) > 0
    made.advance(3)
    assert not made.exporter_reachable
    assert write_parameters(made, tmp_path) == 0
    made.advance(10)
    assert write_parameters(made, tmp_path) > 0


def test_clocks_jump_and_spans_do_not() -> None:
    made = cluster(Event(5, "clock_jump", {"seconds": -3600.0}))
    made.advance(4)
    before = made.epoch
    made.advance(2)
    assert made.epoch == pytest.approx(before + 2 - 3600)
    assert "elapsed_time                        6.0" in text(
        made, "sys/kernel/debug/lustre/llite/lustre-ff110001298dd800/stats")  # fmt: skip


@pytest.mark.parametrize(("target", "path"), [
    ("OST0004", "sys/kernel/debug/lustre/obdfilter/lustre-OST0004/recovery_status"),
    ("MDT0000", "sys/kernel/debug/lustre/mdt/lustre-MDT0000/recovery_status"),
])  # fmt: skip
def test_clients_come_back(target: str, path: str) -> None:
    made = cluster(Event(7, "failover", {"target": target, "seconds": 6.0}), noise=True)
    made.advance(14)
    assert "connected_clients: 0/2" in text(made, path)
    made.advance(1.9)
    assert "connected_clients: 1/2" in text(made, path)
    made.advance(8.3)
    assert "completed_clients: 2/2" in text(made, path)


def test_connections_say_their_state() -> None:
    made = cluster(Event(5, "failover", {"target": "OST0004", "seconds": 4.0}))
    path = "sys/kernel/debug/lustre/osc/lustre-OST0004-osc-ff110001298dd800/import"
    for seconds, state in ((0, "FULL"), (6, "DISCONN"), (10, "FULL")):
        made.advance(seconds)
        assert f"state: {state}\n" in text(made, path)


def test_no_answer_comes_from_a_server_that_is_down() -> None:
    made = cluster(Event(5, "gone", {"target": "OST0005"}))
    made.advance(5)
    answered = sum(client.oscs[5].stats["write_bytes"].samples for client in made.clients)
    made.advance(10)
    late = sum(client.oscs[5].stats["write_bytes"].samples for client in made.clients)
    assert late - answered <= 1  # the one whose answer was on its way
