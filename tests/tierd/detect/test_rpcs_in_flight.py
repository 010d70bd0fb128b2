from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.tierd.detect.clients import facts, rpcs
from tests.tierd.detect.views import FLASH, halves, look
from tests.tierd.worlds import TARGETS, stream
from tierd.model import Finding
from tierd.policies import rpcs_in_flight


def test_a_limit_that_is_always_reached_is_reported_with_its_double() -> None:
    (found,) = look(rpcs_in_flight.POLICY, facts=facts(rpcs({1: 100, 5: 900, 8: 4000, 9: 100})))
    assert found.sentence == ("80% of 5100 write RPCs to pool hdd were sent at the limit of 8 RPCs in flight, on "
                              "client n1")
    assert found.advice[0].command == "lctl set_param osc.lustre-OST*.max_rpcs_in_flight=16"


def test_creates_need_both_limits_raised() -> None:
    (found,) = look(rpcs_in_flight.POLICY, facts=facts(rpcs({8: 5000}, kind="mdc", direction="modify")))
    assert found.advice[0].command == ("lctl set_param mdc.lustre-MDT*.max_rpcs_in_flight=17 "
                                       "mdc.lustre-MDT*.max_mod_rpcs_in_flight=16")


def test_a_higher_limit_of_all_rpcs_is_not_lowered() -> None:
    client = rpcs({8: 5000}, kind="mdc", direction="modify")
    client = replace(client, rpcs=(*client.rpcs, replace(client.rpcs[0], direction="read", max_in_flight=64.0)))
    (found,) = look(rpcs_in_flight.POLICY, facts=facts(client))
    assert found.advice[0].command == "lctl set_param mdc.lustre-MDT*.max_mod_rpcs_in_flight=16"


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
