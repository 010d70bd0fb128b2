"""Callers that share a call. How they run beside it or wait for their turn is in test_app."""

import threading

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


def test_scrapes_of_one_address_keep_another_waiting_for_one_pass_only() -> None:
    flight: SingleFlight[None] = SingleFlight()
    begun: list[str] = []
    go_on = threading.Event()

    def scrape(name: str, names: frozenset[str], address: str) -> threading.Thread:
        def make(_: float) -> None:
            begun.append(name)
            go_on.wait(20)

        thread = threading.Thread(target=flight.do, args=(names, make, 20.0, address))
        thread.start()
        return thread

    def waiting(count: int) -> None:
        while len(flight._changed._waiters) < count:  # type: ignore[attr-defined]
            threading.Event().wait(0.01)

    threads = [scrape("first", ALL, "crowd")]
    while not begun:
        threading.Event().wait(0.01)
    for number in range(20):
        threads.append(scrape(f"crowd {number}", frozenset({"llite", f"c{number}"}), "crowd"))
        waiting(number + 1)
    threads.append(scrape("prometheus", frozenset({"llite", "jobs"}), "prometheus"))
    waiting(21)
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert begun[:2] == ["first", "prometheus"]
    assert len(begun) == 22
