"""Moves among concurrent readers and writers, and movers that are killed: every file is what was last written."""

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.acceptance.conftest import engine_of
from tests.acceptance.ledger import Ledger
from tests.acceptance.site import MIB, Site, checksum, long_ago, noise
from tests.acceptance.workers import Application, read_again_and_again, running
from tierd.act.movers.moves import Move, MoveOutcome, Mover, MoveResult

WRITERS = 4
ROUNDS = 40


@pytest.fixture
def seconds(request: pytest.FixtureRequest) -> float:
    return float(request.config.getoption("--storm-seconds"))


def directories(site: Site, name: str) -> list[Path]:
    """One on each MDT, and one striped over all."""
    made = [site.directory(f"{name}-mdt{n}", mdt=n) for n in range(site.mdt_count)]
    return made + ([site.directory(f"{name}-striped", stripes=site.mdt_count)] if site.mdt_count > 1 else [])


def move_until(site: Site, engine: Mover, places: list[Path], until: float) -> list[MoveOutcome]:
    """Move the present files between the pools until ``stop`` is set."""
    outcomes: list[MoveOutcome] = []
    layouts = [site.in_pool(site.flash), site.in_pool(site.hdd), site.pfl()]
    while time.time() < until:
        found = [place / name for place in places for name in os.listdir(place) if not name.startswith(".")]
        if not found:
            time.sleep(0.1)
            continue
        chosen = random.sample(found, min(12, len(found)))
        layout = random.choice(layouts)
        outcomes += engine.move([Move(site.name(file), layout) for file in chosen])
    return outcomes


def test_writers_readers_and_two_movers(site: Site, engine: Mover, engine_name: str, ledger: Ledger, tmp_path: Path,
                                        seconds: float) -> None:
    until = time.time() + seconds
    places = directories(site, f"storm-{engine_name}")
    written, read = places[: len(places)], site.directory(f"storm-{engine_name}-read", mdt=site.mdt_count - 1)
    for number in range(40):
        (read / str(number)).write_bytes(noise(number * 3000, number))
        long_ago(read / str(number))
    homes = []
    for number in range(WRITERS):
        home = written[number % len(written)] / f"writer{number}"
        home.mkdir()
        homes.append(home)
    jobs = [(Application(home, n).run, (until, tmp_path / f"writer{n}")) for n, home in enumerate(homes)]
    readers = [(read_again_and_again, (read, until, tmp_path / f"reader{n}")) for n in range(2)]
    outcomes: list[MoveOutcome] = []

    def move() -> None:
        outcomes.extend(move_until(site, engine_of(site, engine_name), [*homes, read], until))

    with running(*jobs, *readers):
        movers = [threading.Thread(target=move) for _ in range(2)]
        for thread in movers:
            thread.start()
        for thread in movers:
            thread.join()
    counts = Counter((outcome.result.value, outcome.reason) for outcome in outcomes)
    print(f"\n{engine_name}: {dict(counts)}")
    site.forget_everything()
    for number, home in enumerate(homes):
        expected = json.loads((tmp_path / f"writer{number}").read_text())
        assert {file.name: checksum(file) for file in home.iterdir() if not file.name.startswith(".")} == expected
        ledger.enter(*home.iterdir())
    for number in range(2):
        assert json.loads((tmp_path / f"reader{number}").read_text()) == []
    for number in range(40):
        assert (read / str(number)).read_bytes() == noise(number * 3000, number)
        ledger.enter(read / str(number))
    assert counts["done", ""] > 0
    assert [outcome.detail for outcome in outcomes if outcome.result is MoveResult.DOUBTFUL] == []


def test_unlinkers_and_replacers(site: Site, engine: Mover, engine_name: str, ledger: Ledger, seconds: float) -> None:
    """A file that is removed or replaced at any moment of its move is gone, and nothing to stop for."""
    home = site.directory(f"unlinkers-{engine_name}", mdt=site.mdt_count - 1)
    until = time.time() + min(seconds, 60.0)
    kept = {}
    for number in range(10):
        (home / f"kept{number}").write_bytes(noise(5000 + number, number))
        kept[home / f"kept{number}"] = checksum(long_ago(home / f"kept{number}"))

    def come_and_go(first: int) -> None:
        number = first
        while time.time() < until:
            place = _new(home / f"{number % 30}", noise(3000, number))
            if random.random() < 0.5:
                place.unlink(missing_ok=True)
            number += 1

    threads = [threading.Thread(target=come_and_go, args=(first,)) for first in (0, 7, 13)]
    for thread in threads:
        thread.start()
    outcomes = move_until(site, engine, [home], until)
    for thread in threads:
        thread.join()
    print(f"\n{engine_name}: {dict(Counter((o.result.value, o.reason) for o in outcomes))}")
    assert [o.detail for o in outcomes if o.result is MoveResult.DOUBTFUL] == []
    assert any(o.result is MoveResult.DONE for o in outcomes)
    site.forget_everything()
    assert {file: checksum(file) for file in kept} == kept
    ledger.enter(*kept)


def _new(place: Path, data: bytes) -> Path:
    """A file that replaces the one of that name, if there is one; a name of its own for each thread until then."""
    new = place.with_name(f".{place.name}.{threading.get_ident()}")
    new.write_bytes(data)
    return long_ago(new).replace(place)


def test_truncate_in_the_middle_of_a_large_file(site: Site, engine: Mover, engine_name: str, ledger: Ledger) -> None:
    """The default mode of ``lfs migrate`` loses it; neither engine may."""
    place = site.directory(f"truncate-{engine_name}") / "large"
    for delay in (0.02, 0.05, 0.1, 0.2, 0.4, 0.8):
        place.write_bytes(noise(64 * MIB, 1))
        os.sync()
        long_ago(place)

        def cut() -> None:
            os.truncate(place, 12345)

        timer = threading.Timer(delay, cut)
        timer.start()
        list(engine.move([Move(site.name(place), site.in_pool(site.flash))]))
        timer.join()
        site.forget_everything()
        assert place.read_bytes() == noise(64 * MIB, 1)[:12345]
        list(engine.move([Move(site.name(place), site.in_pool(site.hdd))]))
    ledger.enter(place)


def test_two_movers_on_one_file(site: Site, engine: Mover, engine_name: str, ledger: Ledger) -> None:
    place = site.directory(f"two-{engine_name}") / "a"
    place.write_bytes(noise(32 * MIB, 2))
    digest = checksum(long_ago(place))
    outcomes: list[MoveOutcome] = []

    def move() -> None:
        outcomes.extend(engine_of(site, engine_name).move([Move(site.name(place), site.in_pool(site.flash))]))

    threads = [threading.Thread(target=move) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {outcome.result for outcome in outcomes} <= {MoveResult.DONE, MoveResult.GAVE_WAY, MoveResult.ALREADY}
    assert checksum(place) == digest
    ledger.enter(place)


def _move_for_ever(site: Site, engine_name: str, places: list[Path]) -> None:
    os.setpgid(0, 0)  # so that lfs dies with us
    move_until(site, engine_of(site, engine_name), places, time.time() + 3600)


def test_killed_at_any_moment(site: Site, engine_name: str, ledger: Ledger) -> None:
    """No file is harmed, none stays locked, and no nameless object stays behind."""
    places = directories(site, f"kill-{engine_name}")
    expected = {}
    for number in range(60):
        file = places[number % len(places)] / str(number)
        file.write_bytes(noise(20_000 * (number % 7) + 4 * MIB * (number % 20 == 0), number))
        expected[file] = checksum(long_ago(file))
    os.sync()
    before_bytes = site.used_bytes()
    for _ in range(ROUNDS):
        process = get_context("fork").Process(target=_move_for_ever, args=(site, engine_name, places))
        process.start()
        time.sleep(0.1 + random.random() * 1.5)
        assert process.pid is not None
        with suppress(OSError):  # usually it has done so itself by now
            os.setpgid(process.pid, process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
        for file in expected:
            with file.open("r+b"):
                pass  # nothing locks it any more
    site.forget_everything()
    assert {file: checksum(file) for file in expected} == expected
    ledger.enter(*expected)
    deadline = time.time() + 90
    slack_bytes = 64 * MIB
    while site.used_bytes() > before_bytes + slack_bytes and time.time() < deadline:
        time.sleep(3)
    assert site.used_bytes() <= before_bytes + slack_bytes, "something was left behind on the targets"
