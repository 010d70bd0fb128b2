"""A neighbour that stays longer than the history of its victim."""

from dataclasses import replace

import pytest

from tests.tierd.worlds import TARGETS, small_files, stream, window
from tierd.config.settings import Settings
from tierd.engine import Engine
from tierd.model import DirectoryActivity, Facts, JobLoad, NamespaceLoad

Part = list[JobLoad] | tuple[list[JobLoad], NamespaceLoad]
NOISE = small_files("m.2", 20)
SLOW, WELL = stream("s.1", 44), stream("s.1", 66)
FACTS = Facts(pools={"hdd": TARGETS})
MINUTE = 12
"""Windows."""


def nowhere(_: str, __: float) -> list[DirectoryActivity]:
    return []


def held(*spans: tuple[int, list[Part]], degraded_from: int = 10**9) -> list[bool]:
    """Whether there is a finding after each window of these spans."""
    engine, found, number = Engine(Settings()), [], 0
    for count, parts in spans:
        for _ in range(count):
            seen = window(number, *parts)
            if number >= degraded_from:
                seen = replace(seen, conditions=dict.fromkeys((target for target, _ in seen.loads), "degraded"))
            found.append(any(f.victim == "s.1" for f in engine.run_cycle(seen, nowhere, lambda: FACTS).findings))
            number += 1
    return found


def test_it_holds_as_long_as_it_lasts() -> None:
    quiet, noisy = MINUTE // 2, 35 * MINUTE
    found = held((quiet, [WELL]), (noisy, [SLOW, NOISE]), (3, [WELL]))
    assert not any(found[:quiet])
    assert all(found[quiet + 1:quiet + noisy])
    assert not found[-1]


@pytest.mark.parametrize(("after", "holds"), [([WELL, NOISE], True), ([NOISE], False)],
                         ids=["the stream gains beside as much noise: it has changed itself", "the victim is gone"])
def test_it_ends_with_its_victim_alone(after: list[Part], holds: bool) -> None:
    found = held((6, [WELL]), (8 * MINUTE, [SLOW, NOISE]), (8, after))
    assert found[6 + 8 * MINUTE - 1]
    assert found[-1] is holds


def test_nothing_is_held_on_targets_that_are_not_well() -> None:
    found = held((6, [WELL]), (9 * MINUTE, [SLOW, NOISE]), degraded_from=8 * MINUTE)
    assert found[8 * MINUTE - 1]
    assert not any(found[8 * MINUTE:])
