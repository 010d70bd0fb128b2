from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tierd.detect.clients import WELL, ahead, facts
from tests.tierd.detect.views import halves, look, reads_whole
from tests.tierd.worlds import MIB
from tierd.policies import read_ahead


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


@pytest.mark.parametrize(("size", "reported"), [(64 << 10, False), (64 * MIB, True)])
def test_read_ahead_cannot_foresee_the_first_page_of_a_file(size: int, reported: bool) -> None:
    jumping = ahead(hits=3340, misses=32_901, readpage_not_consecutive=30_000)
    windows = halves(reads_whole("dl.7", 64 * MIB / size, size, rpc_bytes=64 << 10))
    assert bool(look(read_ahead.POLICY, windows, facts(jumping))) == reported


def test_random_reads_do_not_need_a_larger_budget() -> None:
    both = ahead(hits=3000, misses=30_000, readpage_not_consecutive=30_000, hit_max_readahead_issue=9000)
    (found,) = look(read_ahead.POLICY, facts=facts(both))
    assert found.subject == "lustre: jumping"
