"""All advisers that look at clients. Each has a file of its own, too."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.detect.clients import WELL, facts
from tests.tierd.detect.views import look
from tierd.model import RpcLoad
from tierd.policies import read_ahead, rpc_size, rpcs_in_flight, statahead


@given(st.dictionaries(st.sampled_from(["hits", "misses", "read_but_discarded", "readpage_not_consecutive",
                                        "hit_max_readahead_issue"]), st.floats(0, 1e12)),
       st.dictionaries(st.integers(1, 32), st.floats(0, 1e12)), st.floats(0, 4096), st.floats(0, 256))
def test_no_counters_of_a_client_make_a_policy_fail(events: dict[str, float], table: dict[int, float],
                                                        max_pages: float, most: float) -> None:
    client = replace(WELL, read_ahead=events, statahead={"started": events.get("hits", 0.0)},
                     rpcs=(RpcLoad("osc", "hdd", "read", table, table, most, max_pages),))
    for detector in (read_ahead, statahead, rpcs_in_flight, rpc_size):
        look(detector.POLICY, facts=facts(client))
