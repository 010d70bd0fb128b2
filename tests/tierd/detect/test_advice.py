"""No advice that nothing can come of: each adviser, with a job it could not help beside one that it could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import Component, Layout
from tests.tierd.detect.test_client_detectors import WELL, ahead, rpcs
from tests.tierd.detect.views import FLASH, POOLS, filled, halves, look
from tests.tierd.worlds import MIB, TARGETS, small_files, small_io, stream
from tierd.detect.advice import JobTraffic, rpcs_saved
from tierd.detect.profile import profiles
from tierd.model import (
    ClientLoad,
    DirectoryActivity,
    Facts,
    Finding,
    JobLoad,
    NamespaceLoad,
    SharedFile,
    StoredFile,
    Window,
)
from tierd.policies import (
    cold_on_flash,
    flash_pressure,
    hot_small_files,
    imbalance,
    metadata_storm,
    outgrown_component,
    read_ahead,
    rpc_size,
    rpcs_in_flight,
    shared_file_contention,
    small_random_io,
    statahead,
    striping,
)

Part = tuple[list[JobLoad], NamespaceLoad]


def reads_whole(job: str, files_s: float, size: int, targets: Sequence[str] = TARGETS, rpc_bytes: int = 0) -> Part:
    """Existing files, each opened, read whole and closed."""
    files = 30.0 * files_s
    each, rpc = files * size / len(targets), min(rpc_bytes or size, size)
    return ([JobLoad(t, job, read_bytes=each, reads=each / rpc, sizes={rpc: each / rpc}) for t in targets],
            NamespaceLoad(job, opens=files, closes=files))


def facts(*clients: ClientLoad, **more: Any) -> Facts:
    return Facts(pools=POOLS, fill=filled(), clients=clients, **more)


SMALL_READS = rpcs({1: 5000}, {256: 5000}, max_pages=4096, direction="read")
SMALL_READS = replace(SMALL_READS, read_ahead_file_bytes=MIB)


FULL = rpcs({1: 5000}, {256: 5000}, max_pages=256)
LARGE, WHOLE = reads_whole("big.1", 1, 64 * MIB, rpc_bytes=MIB), reads_whole("dl.7", 60, MIB)


@pytest.mark.parametrize(("windows", "client", "reported"), [
    pytest.param(halves(LARGE), SMALL_READS, True, id="large files"),
    pytest.param(halves(reads_whole("dl.7", 64, MIB, rpc_bytes=MIB)), SMALL_READS, False, id="files of one RPC"),
    pytest.param(halves(reads_whole("dl.7", 320, 200_000, rpc_bytes=MIB)), SMALL_READS, False, id="smaller files"),
    pytest.param(halves(stream("s.1", 64, seconds=30.0)), FULL, True, id="a stream at a low limit"),
    pytest.param(halves(small_files("m.2", 64, MIB, seconds=30.0)), FULL, False, id="files as large as a low limit"),
    pytest.param(halves(WHOLE, [JobLoad(t, "s.1", read_bytes=1e9, reads=60.0) for t in TARGETS]), SMALL_READS, False,
                 id="small files beside a stream in full RPCs"),
    pytest.param(halves(WHOLE, reads_whole("big.1", 1, 64 * MIB, FLASH, rpc_bytes=65536)), SMALL_READS, False,
                 id="large files on other targets"),
    pytest.param(halves(LARGE), replace(SMALL_READS, read_ahead={"hits": 100, "misses": 60_000}), False,
                 id="random reads"),
    pytest.param(halves(LARGE), replace(SMALL_READS, read_ahead_file_bytes=256 * MIB), False, id="a large window"),
])
def test_larger_rpcs_are_advised_where_files_and_reads_allow_them(windows: list[Window], client: ClientLoad,
                                                                  reported: bool) -> None:
    assert bool(look(rpc_size.POLICY, windows, facts(client))) == reported


def test_dirty_memory_gathers_no_random_writes() -> None:
    client = rpcs({1: 5000}, {16: 50_000})
    (found,) = look(rpc_size.POLICY, halves(small_io("fio.1", 900, 4096, seconds=30.0)), facts(client))
    assert [advice.where for advice in found.advice] == ["in the application"]


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**4), st.integers(1, 1 << 26)), max_size=5),
       st.integers(4096, 16 << 20))
def test_no_more_rpcs_are_saved_than_sent_and_none_of_small_files(jobs: list[tuple[int, int, int]], rpc: int) -> None:
    parts, small = [], []
    for number, (files, per_file, size) in enumerate(jobs):
        loads, names = reads_whole(f"j.{number}", files / 30, size)
        (job,) = profiles(halves((loads, names), count=1)).values()
        parts.append(JobTraffic(job, float(files * size), float(files * per_file)))
        small.append(JobTraffic(job, float(files * size), float(files)))
    saved = rpcs_saved(parts, rpc)
    assert saved is None if not jobs else 0 <= saved < 1  # type: ignore[operator] # checked before
    assert not small or rpcs_saved(small, float(1 << 30)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("events", "reported"), [
    ({"started": 12, "wrong": 6, "hits": 40, "misses": 27}, False),
    ({"started": 500, "wrong": 400, "hits": 5000, "misses": 999}, False),
    ({"started": 500, "wrong": 400, "hits": 50_000, "misses": 2000}, False),
    ({"started": 2, "wrong": 1, "hits": 1000, "misses": 1000}, True),
    ({"started": 12, "wrong": 6}, True)])
def test_few_missed_entries_are_no_waste_however_many_threads_gave_up(events: dict[str, float], reported: bool) -> None:
    assert bool(look(statahead.POLICY, facts=facts(replace(WELL, statahead=events)))) == reported


def test_statahead_that_is_small_already_is_not_made_smaller() -> None:
    least = replace(WELL, statahead={"started": 50, "wrong": 25}, statahead_max=8)
    (found,) = look(statahead.POLICY, facts=facts(least))
    assert [advice.command for advice in found.advice] == ["lctl set_param llite.lustre-*.statahead_max=0"]


def at_limit(busy_usec: float, targets: Sequence[str]) -> list[Finding]:
    loads = [part._replace(busy_usec=part.writes * busy_usec) for part in
             stream("s.1", 100, seconds=30.0, targets=targets)]
    client = rpcs({8: 5000})
    if targets == FLASH:
        client = replace(client, rpcs=(replace(client.rpcs[0], pool="flash"),))
    return look(rpcs_in_flight.POLICY, halves(loads), facts(client))


def test_more_requests_do_not_help_disks_that_are_busy() -> None:
    assert at_limit(10_000.0, TARGETS), "25 a second of 10 ms each: a quarter of one at a time"
    assert at_limit(400_000.0, TARGETS) == []
    assert at_limit(400_000.0, FLASH), "flash works on many at a time"
    assert at_limit(0.0, TARGETS), "times are not known before 2.14"


@pytest.mark.parametrize(("size", "reported"), [(64 << 10, False), (64 * MIB, True)])
def test_read_ahead_cannot_foresee_the_first_page_of_a_file(size: int, reported: bool) -> None:
    jumping = ahead(hits=3340, misses=32_901, readpage_not_consecutive=30_000)
    windows = halves(reads_whole("dl.7", 64 * MIB / size, size, rpc_bytes=64 << 10))
    assert bool(look(read_ahead.POLICY, windows, facts(jumping))) == reported


def test_random_reads_do_not_need_a_larger_budget() -> None:
    both = ahead(hits=3000, misses=30_000, readpage_not_consecutive=30_000, hit_max_readahead_issue=9000)
    (found,) = look(read_ahead.POLICY, facts=facts(both))
    assert found.subject == "lustre: jumping"


def shared(size: int | None, stripes: int, windows: list[Window]) -> list[Finding]:
    layout = Layout((Component(pool="hdd", stripe_count=stripes, stripe_size=MIB),), composite=False)
    return look(shared_file_contention.POLICY, windows, facts(
        shared_files=(SharedFile("mpi.5", "/proj/run/in", 64, layout, size),)))


def test_a_file_has_no_use_for_more_objects_than_stripes() -> None:
    writes = halves(stream("mpi.5", 40, seconds=30.0, targets=TARGETS[:1]))
    assert shared(200_000, 1, writes) == []
    (found,) = shared(2 * MIB, 1, writes)
    assert found.evidence.numbers()["wanted_objects"] == 2
    (found,) = shared(100 * MIB, 1, writes)
    assert found.evidence.numbers()["wanted_objects"] == 4
    assert shared(None, 1, writes)


def test_readers_do_not_wait_for_each_others_locks() -> None:
    reads = [JobLoad(t, "mpi.5", read_bytes=3e8, reads=300.0) for t in TARGETS]
    assert shared(100 * MIB, 4, halves(reads)) == []
    assert shared(100 * MIB, 4, halves(stream("mpi.5", 40, seconds=30.0)))


def test_more_stripes_are_no_advice_for_small_files_and_what_lies_everywhere() -> None:
    for parts in (small_files("m.2", 90, 4096, seconds=30.0, targets=TARGETS[:1]),
                  [load._replace(writes=load.writes * (40 if load.target == TARGETS[0] else 1)) for load in
                   stream("s.1", 40, seconds=30.0)]):
        (found,) = look(imbalance.POLICY, halves(parts))
        assert found.advice == ()
    (found,) = look(imbalance.POLICY, halves(stream("one.2", 60, seconds=30.0, targets=TARGETS[:1])))
    assert "lfs setstripe -c 4" in found.advice[0].command


def test_readers_of_existing_files_are_advised_to_move_them() -> None:
    reads = [JobLoad(TARGETS[0], "big.1", read_bytes=3e9, reads=3000.0)]
    (found,) = look(striping.POLICY, halves(reads))
    assert found.advice[0].command == "lfs migrate --non-block -c 4 -p hdd FILE"


def test_without_flash_or_room_there_nothing_is_sent_to_it() -> None:
    noise = halves(small_io("fio.7", 48, seconds=30.0))
    for known in (Facts(pools={"hdd": TARGETS}), facts(), Facts(pools=POOLS, fill=filled(flash=0.95))):
        (found,) = look(small_random_io.POLICY, noise, known)
        assert any("-p flash" in advice.command for advice in found.advice) == (known == facts())
    activity = DirectoryActivity("h.1", "/d", opens=5000, creates=100, outgrown=90)
    reread = halves(reads_whole("h.1", 50, 65536))
    for full in (False, True):
        known = Facts(pools=POOLS, fill=filled(flash=0.95 if full else 0.3), directories=(activity,))
        assert bool(look(hot_small_files.POLICY, reread, known)) != full
        (found,) = look(outgrown_component.POLICY, reread, known)
        assert bool(found.advice) != full


def test_without_room_on_disks_nothing_is_sent_there() -> None:
    old = StoredFile(Fid(1, 1), "/d/f", 10**9, ("flash",), -86_400.0 * 30)
    for hdd, reported in ((0.3, True), (0.97, False)):
        known = Facts(pools=POOLS, fill=filled(flash=0.9, hdd=hdd), stored=(old,))
        (cold,) = look(cold_on_flash.POLICY, facts=known)
        (full,) = look(flash_pressure.POLICY, facts=known)
        assert (bool(cold.advice), bool(full.advice)) == (reported, reported)


def test_files_that_are_all_in_use_are_not_listed_as_cold() -> None:
    young = StoredFile(Fid(1, 1), "/d/f", 10**9, ("flash",), 0.0)
    (found,) = look(flash_pressure.POLICY, facts=Facts(pools=POOLS, fill=filled(flash=0.9), stored=(young,)))
    assert not any("lfs find" in advice.command for advice in found.advice)


def storm(creates: int, opens: int, windows: list[Window] | None = None) -> str:
    activity = DirectoryActivity("m.1", "/proj/out", creates=creates, opens=opens)
    (found,) = look(metadata_storm.POLICY, windows, Facts(
        latest_directories=(activity,), latest_seconds=100.0, metadata_targets=4))
    return "\n".join(f"{advice.command} | {advice.effect}" for advice in found.advice)


def test_a_storm_of_opens_does_not_wait_for_the_lock_on_the_directory() -> None:
    assert "one directory per process" in storm(80_000, 0)
    assert "one directory per process" not in storm(1000, 80_000)


def test_a_layout_for_new_files_does_nothing_for_those_that_are_there() -> None:
    assert "lfs migrate --non-block -E 64K -L mdt" in storm(0, 80_000)
    assert "lfs setstripe -E 64K -L mdt" in storm(10_000, 80_000)
    assert "-L mdt" not in storm(10_000, 80_000, halves(reads_whole("m.1", 50, MIB)))
