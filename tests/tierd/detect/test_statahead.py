from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tierd.detect.clients import WELL, facts
from tests.tierd.detect.views import look
from tierd.policies import statahead


def test_entries_missed_count_where_the_release_counts_them() -> None:
    wasted = replace(WELL, statahead={"started": 50, "wrong": 1, "hits": 5000, "misses": 5000})
    (found,) = look(statahead.POLICY, facts=facts(wasted))
    assert "5000 of 10000 entries were missed" in found.sentence


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
