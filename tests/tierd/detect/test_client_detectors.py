"""The advisers that look at clients: ``read-ahead``, ``statahead-waste``, ``rpcs-in-flight``, ``rpc-size``."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.detect.views import look
from tests.tierd.worlds import TARGETS
from tierd.model import ClientLoad, Facts, RpcLoad
from tierd.policies import read_ahead, rpc_size, rpcs_in_flight, statahead

MIB = 1 << 20
NOW = 120.0
WELL = ClientLoad("n1", "/mnt/l", "lustre", NOW - 10, 60.0, {"hits": 60_000, "misses": 600}, 256 * MIB, 64 * MIB,
                  {"started": 40, "wrong": 1, "hits": 27_000, "misses": 100}, 128)


def facts(*clients: ClientLoad) -> Facts:
    return Facts(clients=clients)


def ahead(**events: float) -> ClientLoad:
    return replace(WELL, read_ahead=events)


@pytest.mark.parametrize(("events", "cause", "command"), [
    ({"hits": 10_000, "misses": 30_000, "hit_max_readahead_issue": 9000}, "budget",
     "lctl set_param llite.lustre-*.max_read_ahead_mb=512"),
    ({"hits": 20_000, "misses": 3000, "read_but_discarded": 9000}, "discarded",
     "lctl set_param llite.lustre-*.max_read_ahead_per_file_mb=32"),
    ({"hits": 3340, "misses": 32_901, "readpage_not_consecutive": 30_000}, "jumping", "lctl get_param version"),
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


def test_statahead_that_gives_up_is_reported() -> None:
    (found,) = look(statahead.POLICY, facts=facts(replace(WELL, statahead={"started": 50, "wrong": 25})))
    assert found.sentence == "25 of 50 statahead threads stopped because of a low hit rate (50%), on client n1"
    assert found.advice[0].command == "lctl set_param llite.lustre-*.statahead_max=32"


def test_entries_missed_count_where_the_release_counts_them() -> None:
    wasted = replace(WELL, statahead={"started": 50, "wrong": 1, "hits": 5000, "misses": 5000})
    (found,) = look(statahead.POLICY, facts=facts(wasted))
    assert "5000 of 10000 entries were missed" in found.sentence


def rpcs(in_flight: dict[int, float], pages: dict[int, float] | None = None, max_pages: float = 1024.0,
         kind: str = "osc", direction: str = "write") -> ClientLoad:
    pool = "hdd" if kind == "osc" else "MDT0000"
    return replace(WELL, rpcs=(RpcLoad(kind, pool, direction, in_flight, pages or {}, 8.0, max_pages),))


def test_a_limit_that_is_always_reached_is_reported_with_its_double() -> None:
    (found,) = look(rpcs_in_flight.POLICY, facts=facts(rpcs({1: 100, 5: 900, 8: 4000, 9: 100})))
    assert found.sentence == ("80% of 5100 write RPCs to pool hdd were sent at the limit of 8 RPCs in flight, on "
                              "client n1")
    assert found.advice[0].command == "lctl set_param osc.lustre-OST*.max_rpcs_in_flight=16"


def test_creates_need_both_limits_raised() -> None:
    (found,) = look(rpcs_in_flight.POLICY, facts=facts(rpcs({8: 5000}, kind="mdc", direction="modify")))
    assert found.advice[0].command == ("lctl set_param mdc.lustre-MDT*.max_rpcs_in_flight=17 "
                                       "mdc.lustre-MDT*.max_mod_rpcs_in_flight=16")


@pytest.mark.parametrize(("policy", "client"), [
    *[pytest.param(policy, WELL, id=f"{policy.POLICY.name}: a usual client")
      for policy in (read_ahead, statahead, rpcs_in_flight, rpc_size)],
    pytest.param(read_ahead, ahead(hits=3, misses=300, readpage_not_consecutive=300), id="few reads"),
    pytest.param(read_ahead, replace(ahead(hits=300, misses=30_000, readpage_not_consecutive=30_000), time=NOW - 1000),
                 id="an old reading"),
    pytest.param(rpcs_in_flight, rpcs({1: 3000, 8: 1000}), id="room below the limit"),
    pytest.param(rpcs_in_flight, rpcs({8: 100}), id="few RPCs"),
    pytest.param(rpcs_in_flight, replace(WELL, rpcs=(RpcLoad("osc", "hdd", "read", {8: 5000}),)), id="unknown limit"),
    pytest.param(rpcs_in_flight, replace(WELL, rpcs=(replace(rpcs({256: 5000}).rpcs[0], max_in_flight=256.0),)),
                 id="the largest limit"),
    pytest.param(rpc_size, rpcs({1: 5000}, {1024: 5000.0}), id="large RPCs"),
    pytest.param(rpc_size, rpcs({1: 5000}, {1: 5000.0}), id="little traffic"),
])
def test_other_clients_are_not_reported(policy: ModuleType, client: ClientLoad) -> None:
    assert look(policy.POLICY, facts=facts(client)) == look(policy.POLICY, facts=facts()) == []


def test_full_rpcs_at_a_low_limit_should_be_larger() -> None:
    (found,) = look(rpc_size.POLICY, facts=facts(rpcs({1: 5000}, {64: 100, 256: 4900}, max_pages=256)))
    assert found.sentence == "98% of 5000 write RPCs to pool hdd on client n1 have the maximum size of 1 MiB"
    assert found.advice[1].command == "lctl set_param osc.lustre-OST*.max_pages_per_rpc=4M"


def test_small_rpcs_where_large_may_be_are_the_applications() -> None:
    (found,) = look(rpc_size.POLICY, facts=facts(rpcs({1: 5000}, {64: 5000})))
    assert found.sentence == "write RPCs to pool hdd on client n1 have 256 KiB on average; the maximum is 4 MiB"
    assert "in the application" in {a.where for a in found.advice}


@given(st.dictionaries(st.sampled_from(["hits", "misses", "read_but_discarded", "readpage_not_consecutive",
                                        "hit_max_readahead_issue"]), st.floats(0, 1e12)),
       st.dictionaries(st.integers(1, 32), st.floats(0, 1e12)), st.floats(0, 4096), st.floats(0, 256))
def test_no_counters_of_a_client_make_a_policy_fail(events: dict[str, float], table: dict[int, float],
                                                        max_pages: float, most: float) -> None:
    client = replace(WELL, read_ahead=events, statahead={"started": events.get("hits", 0.0)},
                     rpcs=(RpcLoad("osc", "hdd", "read", table, table, most, max_pages),))
    for detector in (read_ahead, statahead, rpcs_in_flight, rpc_size):
        look(detector.POLICY, facts=facts(client))


UNBATCHED = replace(WELL, statahead_batch=0.0)


def test_batches_that_are_off_are_advised_where_the_node_uses_what_it_fetches() -> None:
    (found,) = look(statahead.POLICY, facts=facts(UNBATCHED))
    assert found.subject == "lustre: unbatched"
    assert found.advice[0].command == "lctl set_param llite.lustre-*.statahead_batch_max=64"
    few = replace(UNBATCHED, statahead={"started": 4, "wrong": 0, "hits": 500, "misses": 1})
    wasted = replace(UNBATCHED, statahead={"started": 4, "wrong": 0, "hits": 20_000, "misses": 9000})
    for other in (replace(UNBATCHED, statahead_batch=64.0), replace(UNBATCHED, statahead_batch=None), few):
        assert look(statahead.POLICY, facts=facts(other)) == []
    assert [f.subject for f in look(statahead.POLICY, facts=facts(wasted))] == ["lustre: waste"]


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
