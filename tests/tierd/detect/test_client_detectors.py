"""All advisers that look at clients. Each has a file of its own, too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.detect.clients import NOW, WELL, ahead, facts, rpcs
from tests.tierd.detect.views import look
from tierd.model import ClientLoad, RpcLoad
from tierd.policies import read_ahead, rpc_size, rpcs_in_flight, statahead
from tierd.policies.protocol import Policy

ADVISERS = (read_ahead.POLICY, statahead.POLICY, rpcs_in_flight.POLICY, rpc_size.POLICY)
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
