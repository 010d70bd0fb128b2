"""Moves of files whose project, name or place is unusual, and of many at once."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from lustre import attributes
from tests.acceptance.ledger import Ledger
from tests.acceptance.site import Site, checksum, made, moved, noise
from tierd.act.movers.inspection import FileEngine
from tierd.act.movers.moves import Move, Mover, MoveResult
from tierd.act.movers.parallel import ParallelMover


def give_to_project(place: Path, *arguments: str) -> None:
    """As ``lfs project`` does; skips where the targets' file systems keep no projects."""
    done = subprocess.run(["lfs", "project", *arguments, str(place)], capture_output=True, check=False, text=True)
    if done.returncode:
        pytest.skip(f"no projects here: {done.stderr.strip()}")


@pytest.mark.parametrize("of_directory", [True, False])
def test_the_project_goes_along(
        site: Site, engine: Mover, directory: Path, ledger: Ledger, of_directory: bool) -> None:
    if of_directory:
        give_to_project(directory, "-p", "4711", "-s")
    place = made(site, directory / "a", noise(10000, 1))
    if not of_directory:
        give_to_project(place, "-p", "4711")
    outcome = moved(engine, site, place, site.in_pool(site.flash))
    assert outcome.result is MoveResult.DONE, outcome.detail
    descriptor = os.open(place, os.O_RDONLY)
    assert attributes.project(descriptor) == 4711
    os.close(descriptor)
    ledger.enter(place)


def test_odd_names(site: Site, engine: Mover, directory: Path, ledger: Ledger) -> None:
    names = (b"with blank", b"new\nline", b"-dash", b"#hash", b"uml\xe4ut", b"a: b", b"x" * 255, b"'\"$(reboot)`")
    places = [made(site, directory / os.fsdecode(name), noise(500, n)) for n, name in enumerate(names)]
    outcomes = list(engine.move([Move(site.name(place), site.in_pool(site.flash)) for place in places]))
    assert {o.result for o in outcomes} == {MoveResult.DONE}, [o.detail for o in outcomes]
    ledger.enter(*places)


def test_a_file_whose_directory_is_on_another_mdt(site: Site, engine: Mover, engine_name: str, ledger: Ledger) -> None:
    """A rename or a link across MDTs leaves the file where it was. It may not be movable there; it must be whole."""
    if site.mdt_count < 2:
        pytest.skip("one MDT only")
    first, second = (site.directory(f"across-{engine_name}-{mdt}", mdt=mdt) for mdt in (0, 1))
    places = []
    for number in range(4):
        place = made(site, first / f"{number}", noise(8000, number))
        if number % 2:
            os.rename(place, second / f"{number}")
        else:
            os.link(place, second / f"{number}")
        places.append(second / f"{number}")
    digests = [checksum(place) for place in places]
    for pool in (site.flash, site.hdd, site.flash):
        outcomes = list(engine.move([Move(site.name(place), site.in_pool(pool)) for place in places]))
        assert {o.result for o in outcomes} <= {MoveResult.DONE, MoveResult.ALREADY, MoveResult.FAILED}, outcomes
        print(f"{engine_name}: {[(o.result.value, o.detail) for o in outcomes]}")
    assert [checksum(place) for place in places] == digests
    ledger.enter(*places)


@pytest.mark.parametrize("workers", [1, 8])
def test_many_small_files_and_how_many_a_second(site: Site, engine: FileEngine, engine_name: str, workers: int,
                                                ledger: Ledger) -> None:
    place = site.directory(f"many-{engine_name}-{workers}", mdt=site.mdt_count - 1)
    files = [made(site, place / str(n), noise(4096, n)) for n in range(128)]
    digests = [checksum(file) for file in files]
    os.sync()
    began = time.monotonic()
    mover = ParallelMover(engine, site.filesystem.pools, workers, workers)
    outcomes = list(mover.move([Move(site.name(file), site.in_pool(site.flash)) for file in files]))
    print(f"{engine_name}, {workers} workers: {len(files) / (time.monotonic() - began):.1f} files/s")
    assert [o.result for o in outcomes] == [MoveResult.DONE] * len(files), [o.detail for o in outcomes if o.detail]
    assert [checksum(file) for file in files] == digests
    ledger.enter(*files)


def test_what_has_the_layout_is_not_copied_again(site: Site, engine: Mover, directory: Path) -> None:
    place = made(site, directory / "a", b"data")
    version = site.layout(place)
    assert moved(engine, site, place, site.in_pool(site.hdd)).result is MoveResult.ALREADY
    assert site.layout(place) == version
