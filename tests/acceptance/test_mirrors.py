"""Mirrors on flash on a real Lustre: extend, resync and split, with writers between, and after kill -9."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from lustre.layout.model import Component, Layout, in_sync, mirrors, one_mirror, with_mirror, without_objects
from tests.acceptance.conftest import engine_of
from tests.acceptance.ledger import Ledger
from tests.acceptance.site import MIB, Site, checksum, long_ago, made, noise
from tests.acceptance.test_gate import FINDING, Tierd
from tierd.act.movers.inspection import FileEngine
from tierd.act.movers.lfs import works_on
from tierd.act.movers.moves import Move, MoveOutcome, MoveResult
from tierd.act.undo import close_unfinished
from tierd.acts import ActKind, Outcome
from tierd.model import Action
from tierd.refusal import Reason

pytest.importorskip("tierd.mirrors")
LARGE_BYTES = 64 * MIB
KILL_AFTER_SECONDS = (0.1, 0.5, 1.5, 4.0)


@pytest.fixture(scope="module")
def engine(site: Site) -> FileEngine:
    return engine_of(site, "lfs")


@pytest.fixture(scope="module")
def folder(site: Site) -> Path:
    return site.directory("mirrors")


def changed(engine: FileEngine, site: Site, place: Path, wanted: Layout, *, own: bool) -> MoveOutcome:
    (outcome,) = engine.move([Move(site.name(place), wanted, own_mirrors=own)])
    return outcome


def extended(engine: FileEngine, site: Site, place: Path) -> MoveOutcome:
    return changed(engine, site, place, with_mirror(site.layout(place), template(site)), own=False)


def template(site: Site) -> Layout:
    """A mirror as policies plan it: not yet with the layout that the file has."""
    return Layout((Component(0, 512 * MIB, pool=site.flash, mirror_id=2),
                   Component(512 * MIB, None, pool=site.hdd, mirror_id=2)), mirror_count=2)


def submitted(tierd: Tierd, place: Path, layout: Layout) -> Outcome:
    """What becomes of a move through the gate."""
    number = tierd.journal.add_finding(FINDING)
    name = tierd.site.name(place)
    tierd.gate.submit([Action(ActKind.MIGRATE, layout, "acceptance", FINDING.key, tierd.site.name(place.parent), name,
                              place.stat().st_size)], number)
    (outcome,) = tierd.gate.pump(time.time() + 600)
    return outcome.result


def split(engine: FileEngine, site: Site, place: Path) -> MoveOutcome:
    kept = next(group for group in mirrors(site.layout(place)) if not any("prefer" in part.flags for part in group))
    return changed(engine, site, place, one_mirror(kept), own=True)


def test_a_file_gets_a_mirror_and_loses_it_as_it_was(
        engine: FileEngine, site: Site, folder: Path, ledger: Ledger) -> None:
    place = made(site, folder / "plain", noise(3 * MIB + 5, 1))
    digest, before, had = checksum(place), place.stat(), site.layout(place).components[0].objects
    outcome = extended(engine, site, place)
    assert outcome.result is MoveResult.DONE, outcome
    layout = site.layout(place)
    assert site.pools_of(place) == [site.hdd, site.flash, site.hdd]
    assert in_sync(layout)
    assert "prefer" in layout.components[1].flags
    assert (place.stat().st_mtime_ns, checksum(place)) == (before.st_mtime_ns, digest)
    site.lfs("mirror", "verify", str(place))
    site.forget_everything()
    assert checksum(place) == digest, "read from the preferred mirror"
    outcome = split(engine, site, place)
    assert outcome.result is MoveResult.DONE, outcome
    assert site.layout(place).components[0].objects == had
    assert site.layout(place).mirror_count == 1
    after = place.stat()
    assert (after.st_mtime_ns, after.st_uid, after.st_mode) == (before.st_mtime_ns, before.st_uid, before.st_mode)
    ledger.enter(place)


def test_a_pfl_file_gets_a_mirror(engine: FileEngine, site: Site, folder: Path, ledger: Ledger) -> None:
    place = made(site, folder / "pfl", noise(3 * MIB, 2), "-E 2M -c 1 -p {hdd} -E -1 -c 2 -p {hdd}")
    assert extended(engine, site, place).result is MoveResult.DONE
    assert site.pools_of(place) == [site.hdd, site.hdd, site.flash, site.hdd]
    assert split(engine, site, place).result is MoveResult.DONE
    assert site.pools_of(place) == [site.hdd, site.hdd]
    ledger.enter(place)


def test_a_write_makes_a_mirror_stale_and_a_resync_restores_it(
        engine: FileEngine, site: Site, folder: Path, ledger: Ledger) -> None:
    place = made(site, folder / "stale", noise(2 * MIB, 3))
    assert extended(engine, site, place).result is MoveResult.DONE
    write(place)
    assert not in_sync(site.layout(place))
    digest, mtime_ns = checksum(place), place.stat().st_mtime_ns
    outcome = changed(engine, site, place, without_objects(site.layout(place)), own=True)
    assert outcome.result is MoveResult.DONE, outcome
    assert in_sync(site.layout(place))
    site.lfs("mirror", "verify", str(place))
    assert (checksum(place), place.stat().st_mtime_ns) == (digest, mtime_ns)
    ledger.enter(place)


def test_a_split_after_a_write_keeps_what_was_written(
        engine: FileEngine, site: Site, folder: Path, ledger: Ledger) -> None:
    place = made(site, folder / "written", noise(2 * MIB, 4))
    assert extended(engine, site, place).result is MoveResult.DONE
    write(place)
    digest, mtime_ns = checksum(place), place.stat().st_mtime_ns
    outcome = split(engine, site, place)
    assert outcome.result is MoveResult.DONE, outcome
    assert site.pools_of(place) == [site.hdd]
    site.forget_everything()
    assert (checksum(place), place.stat().st_mtime_ns) == (digest, mtime_ns)
    ledger.enter(place)


def test_a_time_that_was_set_while_there_were_two_mirrors_stays(
        engine: FileEngine, site: Site, folder: Path, ledger: Ledger) -> None:
    place = made(site, folder / "touched", noise(MIB, 13))
    assert extended(engine, site, place).result is MoveResult.DONE
    os.utime(place, (1_400_000_000, 1_400_000_000))
    assert split(engine, site, place).result is MoveResult.DONE
    site.forget_everything()
    assert place.stat().st_mtime == 1_400_000_000
    ledger.enter(place)


def test_mirrors_of_others_stay(engine: FileEngine, site: Site, folder: Path) -> None:
    place = made(site, folder / "others", noise(MIB, 5))
    site.lfs("mirror", "extend", "-N", "-c", "1", "-p", site.flash, str(place))
    before = site.layout(place)
    kept = one_mirror(mirrors(before)[0])
    for own in (False, True):  # True: even if the journal had the same shape, it is not marked as preferred
        outcome = changed(engine, site, place, kept, own=own)
        assert (outcome.result, outcome.reason) == (MoveResult.REFUSED, Reason.MIRRORED)
    assert site.layout(place) == before


def test_who_has_the_file_open_for_writing_keeps_it(engine: FileEngine, site: Site, folder: Path) -> None:
    place = made(site, folder / "open", noise(MIB, 6))
    with place.open("r+b"):
        assert extended(engine, site, place).result is MoveResult.GAVE_WAY
    assert site.pools_of(place) == [site.hdd]
    assert extended(engine, site, place).result is MoveResult.DONE
    with place.open("r+b"):
        outcome = split(engine, site, place)
        assert outcome.result is MoveResult.GAVE_WAY, outcome
    assert site.layout(place).mirror_count == 2


@pytest.mark.parametrize("after_seconds", [0.5, 1.5, 3.0])
def test_a_write_during_an_extension_stands(
        engine: FileEngine, site: Site, folder: Path, ledger: Ledger, after_seconds: float) -> None:
    place = made(site, folder / f"during-{after_seconds}", noise(LARGE_BYTES, 7))
    with later(after_seconds, lambda: patch(place)):
        outcome = extended(engine, site, place)
    assert outcome.result in {MoveResult.GAVE_WAY, MoveResult.DONE}, outcome
    assert (outcome.result is MoveResult.DONE) == (site.layout(place).mirror_count == 2)
    assert place.read_bytes()[:5] == b"later"
    if site.layout(place).mirror_count == 2:
        long_ago(place)
        assert split(engine, site, place).result is MoveResult.DONE
    site.forget_everything()
    data = place.read_bytes()
    assert data == b"later" + noise(LARGE_BYTES, 7)[5:]
    ledger.enter(place)


@pytest.mark.parametrize("after_seconds", KILL_AFTER_SECONDS)
def test_a_killed_extension_leaves_the_file_whole(
        engine: FileEngine, site: Site, folder: Path, ledger: Ledger, after_seconds: float) -> None:
    place = made(site, folder / f"killed-{after_seconds}", noise(LARGE_BYTES, 8))
    digest = checksum(place)
    kill("extend", "-N", "--flags=prefer", "-c", "1", "-p", site.flash, str(place), after_seconds=after_seconds)
    layout = site.layout(place)
    assert layout.mirror_count == 1 or in_sync(layout)
    if layout.mirror_count == 2:
        assert split(engine, site, place).result is MoveResult.DONE
    else:
        assert extended(engine, site, place).result is MoveResult.DONE
    site.forget_everything()
    assert checksum(place) == digest
    ledger.enter(place)


@pytest.mark.parametrize("after_seconds", KILL_AFTER_SECONDS)
def test_a_killed_resync_is_made_good(
        engine: FileEngine, site: Site, folder: Path, ledger: Ledger, after_seconds: float) -> None:
    place = made(site, folder / f"resync-{after_seconds}", noise(LARGE_BYTES, 9))
    assert extended(engine, site, place).result is MoveResult.DONE
    write(place)
    digest = checksum(place)
    kill("resync", str(place), after_seconds=after_seconds)
    assert checksum(place) == digest
    outcome = split(engine, site, place)
    assert outcome.result is MoveResult.DONE, outcome
    site.forget_everything()
    assert (checksum(place), site.pools_of(place)) == (digest, [site.hdd])
    ledger.enter(place)


@pytest.mark.parametrize("after_seconds", [0.02, 0.1, 0.3])
def test_a_killed_split_leaves_the_file_whole(
        engine: FileEngine, site: Site, folder: Path, ledger: Ledger, after_seconds: float) -> None:
    place = made(site, folder / f"split-{after_seconds}", noise(4 * MIB, 10))
    digest = checksum(place)
    assert extended(engine, site, place).result is MoveResult.DONE
    kill("split", "-d", "--mirror-id", str(mirrors(site.layout(place))[1][0].mirror_id), str(place),
         after_seconds=after_seconds)
    assert site.layout(place).mirror_count in {1, 2}
    site.forget_everything()
    assert checksum(place) == digest
    if site.layout(place).mirror_count == 2:
        assert split(engine, site, place).result is MoveResult.DONE
    ledger.enter(place)


def test_the_journal_knows_its_mirrors(
        engine: FileEngine, site: Site, folder: Path, ledger: Ledger, tmp_path: Path) -> None:
    place, other = (made(site, folder / name, noise(MIB, 11)) for name in ("ours", "theirs"))
    tierd = Tierd(site, engine, tmp_path)
    assert submitted(tierd, place, template(site)) is Outcome.DONE
    site.lfs("mirror", "extend", "-N", "--flags=prefer", "-E", "512M", "-c", "1", "-p", site.flash, "-E", "-1", "-c",
             "1", "-p", site.hdd, str(other))
    for each, outcome in ((place, Outcome.DONE), (other, Outcome.REFUSED)):
        assert submitted(tierd, each, one_mirror(mirrors(site.layout(each))[0])) is outcome
    assert site.pools_of(place) == [site.hdd]
    assert site.layout(other).mirror_count == 2
    one, two = (tierd.journal.entry(number) for number in (1, 2))
    assert one is not None
    assert two is not None
    assert tierd.undo(two, "acceptance").outcome == Outcome.UNDONE, "the mirror is made again"
    assert site.layout(place).mirror_count == 2
    assert tierd.undo(one, "acceptance").outcome == Outcome.UNDONE
    assert site.pools_of(place) == [site.hdd]
    ledger.enter(place)


@pytest.mark.parametrize("after_seconds", KILL_AFTER_SECONDS)
def test_a_killed_tierd_finds_out_whether_the_mirror_was_made(
        engine: FileEngine, site: Site, folder: Path, ledger: Ledger, tmp_path: Path, after_seconds: float) -> None:
    place = made(site, folder / f"tierd-{after_seconds}", noise(LARGE_BYTES, 12))
    digest = checksum(place)
    child = os.fork()
    if not child:
        try:
            submitted(Tierd(site, engine_of(site, "lfs"), tmp_path), place, template(site))
        finally:
            os._exit(0)
    time.sleep(after_seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while works_on([str(site.filesystem.status(site.name(place)).fid)]):  # as a tierd that starts waits
        time.sleep(0.1)
    tierd = Tierd(site, engine, tmp_path)
    for entry, outcome, _ in close_unfinished(tierd.journal, site.filesystem, time.time()):
        assert (outcome is Outcome.DONE) == (site.layout(place).mirror_count == 2), (entry, outcome)
    for entry in list(tierd.journal.entries(Outcome.DONE)):
        assert tierd.undo(entry, "acceptance").outcome == Outcome.UNDONE
    site.forget_everything()
    assert (checksum(place), site.pools_of(place)) == (digest, [site.hdd])
    ledger.enter(place)


def patch(place: Path) -> None:
    with place.open("r+b") as file:
        file.write(b"later")


def write(place: Path) -> None:
    """Write, and make it look old: tierd gives ``lfs`` no file that was modified a moment ago."""
    patch(place)
    os.sync()
    long_ago(place)


@contextmanager
def later(seconds: float, act: object) -> Iterator[None]:
    timer = Timer(seconds, act)  # type: ignore[arg-type]
    timer.start()
    try:
        yield
    finally:
        timer.join()


def kill(*words: str, after_seconds: float) -> None:
    """Kill ``lfs mirror`` after some time, and wait until Lustre has dropped its lease."""
    process = subprocess.Popen(["lfs", "mirror", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(after_seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1.0)
