from __future__ import annotations

from simulator.engine import Completion, Engine, Steps


def test_events_of_one_instant_keep_their_order() -> None:
    engine, seen = Engine(), list[int]()
    for number in range(5):
        engine.after(1.0, seen.append, number)
    engine.run_until(1.0)
    assert seen == [0, 1, 2, 3, 4]


def test_waiting_for_what_is_done_takes_no_time_and_no_stack() -> None:
    engine, ready = Engine(), Completion()
    ready.succeed(1)

    def process() -> Steps[int]:
        total = 0
        for _ in range(5000):
            total += yield ready
        return total

    assert engine.spawn(process()).value == 5000
