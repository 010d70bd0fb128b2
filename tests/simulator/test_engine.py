from __future__ import annotations

import errno

from simulator.engine import Completion, Engine, Steps, gather


def test_events_of_one_instant_keep_their_order() -> None:
    engine, seen = Engine(), list[int]()
    for number in range(5):
        engine.after(1.0, seen.append, number)
    engine.run_until(1.0)
    assert seen == [0, 1, 2, 3, 4]


def test_a_process_gets_the_error_of_what_it_waited_for() -> None:
    engine, broken = Engine(), Completion()

    def process() -> Steps[str]:
        try:
            yield broken
        except OSError as error:
            return f"errno {error.errno}"
        return "fine"

    finished = engine.spawn(process())
    broken.fail(OSError(errno.EIO, "broken"))
    assert finished.value == "errno 5"


def test_an_error_nobody_caught_ends_the_process_with_it() -> None:
    def process() -> Steps[None]:
        yield 1.0
        raise OSError(errno.ENOSPC, "full")

    engine = Engine()
    finished = engine.spawn(process())
    engine.run_until(2.0)
    assert finished.error is not None
    assert finished.error.errno == errno.ENOSPC


def test_gather_waits_for_all_even_after_an_error() -> None:
    one, two = Completion(), Completion()
    whole = gather([one, two])
    one.fail(OSError(errno.EIO, "broken"))
    assert not whole.done
    two.succeed()
    assert whole.done
    assert whole.error is one.error


def test_gather_of_nothing_is_done() -> None:
    assert gather([]).done


def test_waiting_for_what_is_done_takes_no_time_and_no_stack() -> None:
    engine, ready = Engine(), Completion()
    ready.succeed(1)

    def process() -> Steps[int]:
        total = 0
        for _ in range(5000):
            total += yield ready
        return total

    assert engine.spawn(process()).value == 5000


def test_a_single_part_that_is_gathered_ends_with_its_error() -> None:
    engine, part = Engine(), Completion()

    def process() -> Steps[int | None]:
        try:
            yield gather([part])
        except OSError as error:
            return error.errno
        return 0

    finished = engine.spawn(process())
    assert not finished.done
    part.fail(OSError(errno.EIO, "broken"))
    assert finished.value == errno.EIO
