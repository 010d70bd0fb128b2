"""Callers that share a call. How they run beside it or wait for their turn is in test_app."""

from __future__ import annotations

import pytest

from exporter.single_flight import SingleFlight

ALL = frozenset({"llite", "osc"})


def test_a_failed_pass_is_not_shared_and_the_next_has_all_its_time() -> None:
    flight: SingleFlight[float] = SingleFlight()

    def fail(_: float) -> float:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        flight.do(ALL, fail, 20.0)
    assert 0 < flight.do(ALL, lambda left: left, 5.0) <= 5
