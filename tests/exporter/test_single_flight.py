"""Callers that share a call, run beside it, or wait for their turn."""

from __future__ import annotations

import threading

import pytest

from exporter.single_flight import SingleFlight, WaitTimeoutError
from tests.exporter.test_app import WAIT

ALL = frozenset({"llite", "osc"})


def test_a_failed_pass_is_not_shared() -> None:
    flight: SingleFlight[int] = SingleFlight()

    def fail(_: float) -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        flight.do(ALL, fail, WAIT)
    assert flight.do(ALL, lambda _: 7, WAIT) == 7


def test_a_long_pass_of_some_collectors_keeps_no_scrape_of_others_waiting() -> None:
    flight: SingleFlight[str] = SingleFlight()
    entered, go_on = threading.Event(), threading.Event()

    def slow(_: float) -> str:
        entered.set()
        assert go_on.wait(WAIT)
        return "jobs"

    jobs = frozenset({"jobs"})
    long = threading.Thread(target=lambda: flight.do(jobs, slow, WAIT))
    long.start()
    assert entered.wait(WAIT)
    assert flight.do(frozenset({"llite", "osc"}), lambda _: "beside", WAIT) == "beside"
    for same in (jobs, jobs | {"osc"}):
        with pytest.raises(WaitTimeoutError):
            flight.do(same, lambda _: "never", 0.01)
    go_on.set()
    long.join(WAIT)
    assert flight.do(jobs, lambda left: f"{0 < left <= 5}", 5.0) == "True"
