from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.detect.clients import facts, rpcs
from tests.tierd.detect.views import FLASH, halves, look, reads_whole
from tests.tierd.worlds import MIB, TARGETS, small_files, small_io, stream
from tierd.detect.advice import JobTraffic, rpcs_saved
from tierd.detect.profile import profiles
from tierd.model import ClientLoad, Facts, JobLoad, Window
from tierd.policies import rpc_size


def test_full_rpcs_at_a_low_limit_should_be_larger() -> None:
    (found,) = look(rpc_size.POLICY, facts=facts(rpcs({1: 5000}, {64: 100, 256: 4900}, max_pages=256)))
    assert found.sentence == "98% of 5000 write RPCs to pool hdd on client n1 have the maximum size of 1 MiB"
    assert found.advice[1].command == "lctl set_param osc.lustre-OST*.max_pages_per_rpc=4M"


def test_small_rpcs_where_large_may_be_are_the_applications() -> None:
    (found,) = look(rpc_size.POLICY, facts=facts(rpcs({1: 5000}, {64: 5000})))
    assert found.sentence == "write RPCs to pool hdd on client n1 have 256 KiB on average; the maximum is 4 MiB"
    assert "in the application" in {a.where for a in found.advice}


@pytest.mark.parametrize(("accepted", "commands"), [
    (0, ["obdfilter.lustre-*.brw_size=4", "max_pages_per_rpc=4M"]),
    (4 * MIB, ["max_pages_per_rpc=4M"]),
    (16 * MIB, ["max_pages_per_rpc=16M"]),
    (MIB, ["obdfilter.lustre-*.brw_size=16", "max_pages_per_rpc=16M"]),
])
def test_advice_on_rpc_size_uses_what_the_targets_accept(accepted: int, commands: list[str]) -> None:
    client = rpcs({1: 5000}, {64: 100, 256: 4900}, max_pages=256)
    known = Facts(clients=(client,), pools={client.rpcs[0].pool: TARGETS},
                  max_rpc_bytes=dict.fromkeys(TARGETS, accepted) if accepted else {})
    (found,) = look(rpc_size.POLICY, facts=known)
    assert [advice.command.partition("set_param ")[2].removeprefix("osc.lustre-OST*.")
            for advice in found.advice] == commands


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
