"""Advisers that look at clients: read-ahead, statahead, the size of RPCs and how many are in flight."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.policies.views import FLASH, POOLS, filled, halves, look, reads_whole
from tests.tierd.worlds import MIB, TARGETS, small_files, small_io, stream
from tierd.detect.profile import profiles
from tierd.detect.view import JobTraffic, rpcs_saved
from tierd.model import ClientLoad, Facts, Finding, JobLoad, RpcLoad, Window
from tierd.policies import read_ahead, rpc_size, rpcs_in_flight, statahead_waste
from tierd.policies.protocol import Policy

NOW = 120.0
WELL = ClientLoad("n1", "/mnt/l", "lustre", NOW - 10, 60.0, {"hits": 60_000, "misses": 600}, 256 * MIB, 64 * MIB,
                  {"started": 40, "wrong": 1, "hits": 27_000, "misses": 100}, 128)


def facts(*clients: ClientLoad) -> Facts:
    return Facts(pools=POOLS, fill=filled(), clients=clients)


def ahead(**events: float) -> ClientLoad:
    return replace(WELL, read_ahead=events)


def rpcs(in_flight: dict[int, float], pages: dict[int, float] | None = None, max_pages: float = 1024.0,
         kind: str = "osc", direction: str = "write") -> ClientLoad:
    pool = "hdd" if kind == "osc" else "MDT0000"
    return replace(WELL, rpcs=(RpcLoad(kind, pool, direction, in_flight, pages or {}, 8.0, max_pages),))


ADVISERS = (read_ahead.POLICY, statahead_waste.POLICY, rpcs_in_flight.POLICY, rpc_size.POLICY)
JUMPING = ahead(hits=300, misses=30_000, readpage_not_consecutive=30_000)


@pytest.mark.parametrize(("policy", "client"), [
    *(pytest.param(policy, WELL, id=f"a usual client, {policy.name}") for policy in ADVISERS),
    pytest.param(read_ahead.POLICY, ahead(hits=3, misses=300, readpage_not_consecutive=300), id="few reads"),
    pytest.param(read_ahead.POLICY, replace(JUMPING, time=NOW - 1000), id="an old reading"),
    pytest.param(rpc_size.POLICY, rpcs({1: 5000}, {1024: 5000.0}), id="large RPCs"),
    pytest.param(rpc_size.POLICY, rpcs({1: 5000}, {1: 5000.0}), id="little traffic"),
    pytest.param(rpcs_in_flight.POLICY, rpcs({1: 3000, 8: 1000}), id="room below the limit"),
    pytest.param(rpcs_in_flight.POLICY, rpcs({8: 100}), id="few RPCs"),
    pytest.param(rpcs_in_flight.POLICY, replace(WELL, rpcs=(RpcLoad("osc", "hdd", "read", {8: 5000}),)),
                 id="unknown limit"),
    pytest.param(rpcs_in_flight.POLICY, replace(WELL, rpcs=(replace(
        rpcs({256: 5000}).rpcs[0], max_in_flight=256.0),)), id="the largest limit"),
])
def test_other_clients_are_not_reported(policy: Policy, client: ClientLoad) -> None:
    assert look(policy, facts=facts(client)) == look(policy, facts=facts()) == []


@given(st.dictionaries(st.sampled_from(["hits", "misses", "read_but_discarded", "readpage_not_consecutive",
                                        "hit_max_readahead_issue"]), st.floats(0, 1e12)),
       st.dictionaries(st.integers(1, 32), st.floats(0, 1e12)), st.floats(0, 4096), st.floats(0, 256))
def test_no_counters_of_a_client_make_a_policy_fail(events: dict[str, float], table: dict[int, float],
                                                        max_pages: float, most: float) -> None:
    client = replace(WELL, read_ahead=events, statahead={"started": events.get("hits", 0.0)},
                     rpcs=(RpcLoad("osc", "hdd", "read", table, table, most, max_pages),))
    for policy in ADVISERS:
        look(policy, facts=facts(client))


# read-ahead

@pytest.mark.parametrize(("events", "cause", "command"), [
    ({"hits": 10_000, "misses": 30_000, "hit_max_readahead_issue": 9000}, "budget",
     "lctl set_param llite.lustre-*.max_read_ahead_mb=512"),
    ({"hits": 20_000, "misses": 3000, "read_but_discarded": 9000}, "discarded",
     "lctl set_param llite.lustre-*.max_read_ahead_per_file_mb=32"),
    ({"hits": 3340, "misses": 32_901, "readpage_not_consecutive": 30_000}, "jumping", "lctl get_param version"),
    ({"hits": 3000, "misses": 30_000, "readpage_not_consecutive": 30_000, "hit_max_readahead_issue": 9000}, "jumping",
     "lctl get_param version"),  # random reads do not need a larger budget
])
def test_each_cause_has_its_remedy(events: dict[str, float], cause: str, command: str) -> None:
    (found,) = look(read_ahead.POLICY, facts=facts(ahead(**events)))
    assert found.subject == f"lustre: {cause}"
    assert found.advice[0].command == command
    assert found.advice[0].where == "on client n1"
    assert found.advice_only


def test_clients_with_the_same_cause_share_one_finding() -> None:
    bad = ahead(hits=3000, misses=30_000, readpage_not_consecutive=30_000)
    (found,) = look(read_ahead.POLICY, facts=facts(*(replace(bad, client=f"n{n}") for n in range(40)), WELL))
    assert "on 40 clients: n0, n1, n2 and 37 more" in found.sentence
    assert found.evidence.numbers()["clients"] == 40


def test_a_stride_that_is_foreseen_again_ends_it_only_when_most_hit() -> None:
    held = {("read-ahead", "", "lustre: jumping")}
    middling = ahead(hits=18_000, misses=12_000, readpage_not_consecutive=12_000)
    assert look(read_ahead.POLICY, facts=facts(middling)) == []
    assert look(read_ahead.POLICY, facts=facts(middling), active=held)


@pytest.mark.parametrize(("size", "reported"), [(64 << 10, False), (64 * MIB, True)])
def test_read_ahead_cannot_foresee_the_first_page_of_a_file(size: int, reported: bool) -> None:
    jumping = ahead(hits=3340, misses=32_901, readpage_not_consecutive=30_000)
    windows = halves(reads_whole("dl.7", 64 * MIB / size, size, rpc_bytes=64 << 10))
    assert bool(look(read_ahead.POLICY, windows, facts(jumping))) == reported


# statahead

def test_entries_missed_count_where_the_release_counts_them() -> None:
    wasted = replace(WELL, statahead={"started": 50, "wrong": 1, "hits": 5000, "misses": 5000})
    (found,) = look(statahead_waste.POLICY, facts=facts(wasted))
    assert "5000 of 10000 entries were missed" in found.sentence


UNBATCHED = replace(WELL, statahead_batch=0.0)


def test_batches_that_are_off_are_advised_where_the_node_uses_what_it_fetches() -> None:
    (found,) = look(statahead_waste.POLICY, facts=facts(UNBATCHED))
    assert found.subject == "lustre: unbatched"
    assert found.advice[0].command == "lctl set_param llite.lustre-*.statahead_batch_max=64"
    few = replace(UNBATCHED, statahead={"started": 4, "wrong": 0, "hits": 500, "misses": 1})
    wasted = replace(UNBATCHED, statahead={"started": 4, "wrong": 0, "hits": 20_000, "misses": 9000})
    for other in (replace(UNBATCHED, statahead_batch=64.0), replace(UNBATCHED, statahead_batch=None), few):
        assert look(statahead_waste.POLICY, facts=facts(other)) == []
    assert [f.subject for f in look(statahead_waste.POLICY, facts=facts(wasted))] == ["lustre: waste"]


@pytest.mark.parametrize(("events", "reported"), [
    ({"started": 12, "wrong": 6, "hits": 40, "misses": 27}, False),
    ({"started": 500, "wrong": 400, "hits": 5000, "misses": 999}, False),
    ({"started": 500, "wrong": 400, "hits": 50_000, "misses": 2000}, False),
    ({"started": 2, "wrong": 1, "hits": 1000, "misses": 1000}, True),
    ({"started": 12, "wrong": 6}, True)])
def test_few_missed_entries_are_no_waste_however_many_threads_gave_up(events: dict[str, float], reported: bool) -> None:
    assert bool(look(statahead_waste.POLICY, facts=facts(replace(WELL, statahead=events)))) == reported


def test_statahead_that_is_small_already_is_not_made_smaller() -> None:
    least = replace(WELL, statahead={"started": 50, "wrong": 25}, statahead_max=8)
    (found,) = look(statahead_waste.POLICY, facts=facts(least))
    assert [advice.command for advice in found.advice] == ["lctl set_param llite.lustre-*.statahead_max=0"]


# RPCs in flight

def test_a_limit_that_is_always_reached_is_reported_with_its_double() -> None:
    (found,) = look(rpcs_in_flight.POLICY, facts=facts(rpcs({1: 100, 5: 900, 8: 4000, 9: 100})))
    assert found.sentence == ("80% of 5100 write RPCs to pool hdd were sent at the limit of 8 RPCs in flight, on "
                              "client n1")
    assert found.advice[0].command == "lctl set_param osc.lustre-OST*.max_rpcs_in_flight=16"


def test_creates_need_both_limits_raised_and_a_higher_one_of_all_rpcs_is_not_lowered() -> None:
    client = rpcs({8: 5000}, kind="mdc", direction="modify")
    (found,) = look(rpcs_in_flight.POLICY, facts=facts(client))
    assert found.advice[0].command == ("lctl set_param mdc.lustre-MDT*.max_rpcs_in_flight=17 "
                                       "mdc.lustre-MDT*.max_mod_rpcs_in_flight=16")
    client = replace(client, rpcs=(*client.rpcs, replace(client.rpcs[0], direction="read", max_in_flight=64.0)))
    (found,) = look(rpcs_in_flight.POLICY, facts=facts(client))
    assert found.advice[0].command == "lctl set_param mdc.lustre-MDT*.max_mod_rpcs_in_flight=16"


def at_limit(busy_usec: float, targets: Sequence[str], pool: str = "hdd") -> list[Finding]:
    loads = [part._replace(busy_usec=part.writes * busy_usec) for part in
             stream("s.1", 100, seconds=30.0, targets=targets)]
    client = rpcs({8: 5000})
    client = replace(client, rpcs=(replace(client.rpcs[0], pool=pool),))
    known = replace(facts(client), pools={**POOLS, "all": (*FLASH, *TARGETS)})
    return look(rpcs_in_flight.POLICY, halves(loads), known)


def test_more_requests_do_not_help_disks_that_are_busy() -> None:
    assert at_limit(10_000.0, TARGETS), "25 a second of 10 ms each: a quarter of one at a time"
    assert at_limit(400_000.0, TARGETS) == []
    assert at_limit(400_000.0, TARGETS, "all,hdd") == [], "exporters name all pools of a target"
    assert at_limit(400_000.0, FLASH, "flash"), "flash works on many at a time"
    assert at_limit(0.0, TARGETS), "times are not known before 2.14"


# the size of RPCs

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
        parts.append(JobTraffic(job, float(files * size), float(files * per_file), float(size)))
        small.append(JobTraffic(job, float(files * size), float(files), float(size)))
    saved = rpcs_saved(parts, rpc)
    assert saved is None if not jobs else 0 <= saved < 1  # type: ignore[operator] # checked before
    assert not small or rpcs_saved(small, float(1 << 30)) == pytest.approx(0, abs=1e-9)
