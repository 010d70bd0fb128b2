"""Moves of files without other users: only the place of their data changes."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lustre.layout.model import Component, Layout
from tests.acceptance.ledger import Ledger
from tests.acceptance.site import MIB, Site, checksum, long_ago, made, moved, noise
from tierd.act.movers.moves import Move, Mover, MoveResult

SIZES = (0, 1, 4095, 4096, 4097, 65536, 3 * MIB + 17, 70 * MIB + 1)


def attributes(place: Path) -> dict[str, bytes]:
    """Extended attributes that have nothing to do with the place of the data."""
    names = (name for name in os.listxattr(place) if not name.startswith(("lustre.", "trusted.")))
    return {name: os.getxattr(place, name) for name in names}


def test_files_of_many_sizes(site: Site, engine: Mover, directory: Path, ledger: Ledger) -> None:
    places = [made(site, directory / str(size), noise(size, size)) for size in SIZES]
    before = {place: (checksum(place), place.stat()) for place in places}
    outcomes = list(engine.move([Move(site.name(place), site.in_pool(site.flash)) for place in places]))
    assert [o.result for o in outcomes] == [MoveResult.DONE] * len(places), [o.detail for o in outcomes]
    for place, (digest, status) in before.items():
        now = place.stat()
        assert (now.st_ino, now.st_size, now.st_uid, now.st_gid, now.st_mode) == (
            status.st_ino, status.st_size, status.st_uid, status.st_gid, status.st_mode)
        assert int(now.st_mtime) == 1_500_000_000
        assert site.pools_of(place) == [site.flash]
        assert checksum(place) == digest
        ledger.enter(place)


def test_there_and_back_many_times(site: Site, engine: Mover, directory: Path, ledger: Ledger) -> None:
    places = [made(site, directory / f"{n}", noise(4096 + n, n)) for n in range(30)]
    digests = [checksum(place) for place in places]
    for pool in (site.flash, site.hdd) * 3:
        outcomes = list(engine.move([Move(site.name(place), site.in_pool(pool)) for place in places]))
        assert {o.result for o in outcomes} == {MoveResult.DONE}, [o.detail for o in outcomes]
    assert [checksum(place) for place in places] == digests
    ledger.enter(*places)


@pytest.mark.parametrize(("shape", "wanted", "pools"), [
    ("-E 2M -c 1 -p {flash} -E -1 -c 1 -p {hdd}", lambda s: s.in_pool(s.hdd), ["hdd"]),
    ("-c -1 -p {hdd}", lambda s: s.pfl(), ["flash", "hdd"]),
    ("-E 64K -L mdt -E -1 -c 1 -p {hdd}", lambda s: s.in_pool(s.flash), ["flash"]),
    ("-E 64K -L mdt -E -1 -c 1 -p {hdd}",
     lambda s: Layout((Component(0, 65536, pattern="mdt", stripe_count=0), Component(65536, None, pool=s.flash))),
     ["", "flash"]),
    ("-C 4 -p {hdd}", lambda s: s.in_pool(s.flash), ["flash"]),
], ids=["PFL to plain", "wide to PFL", "DoM to plain", "DoM to DoM", "overstriped to plain"])
@pytest.mark.parametrize("size", [1000, 5 * MIB])
def test_between_kinds_of_layout(site: Site, engine: Mover, directory: Path, ledger: Ledger,
                                 shape: str, wanted: Callable[[Site], Layout], pools: list[str], size: int) -> None:
    """Times are compared before anybody reads the file. ``lfs`` leaves data on the MDT to ``lease``."""
    place = made(site, directory / "a", noise(size, size), shape)
    outcome = moved(engine, site, place, wanted(site))
    times = int(place.stat().st_atime), int(place.stat().st_mtime)
    assert outcome.result is MoveResult.DONE, outcome.detail
    names = {"flash": site.flash, "hdd": site.hdd, "": ""}
    assert site.pools_of(place) == [names[pool] for pool in pools]
    assert times == (1_600_000_000, 1_500_000_000)
    assert place.read_bytes() == noise(size, size)
    ledger.enter(place)


def test_sparse_files_stay_sparse(site: Site, engine: Mover, directory: Path, ledger: Ledger) -> None:
    place = directory / "sparse"
    with place.open("wb") as file:
        file.seek(200 * MIB)
        file.write(b"island")
        file.truncate(256 * MIB)
    long_ago(place)
    digest = checksum(place)
    assert moved(engine, site, place, site.in_pool(site.flash)).result is MoveResult.DONE
    assert place.stat().st_size == 256 * MIB
    assert checksum(place) == digest
    os.sync()
    assert place.stat().st_blocks * 512 < 16 * MIB
    ledger.enter(place)


def test_hard_links_attributes_and_access_lists(site: Site, engine: Mover, directory: Path, ledger: Ledger) -> None:
    place = made(site, directory / "a", noise(10000, 1))
    os.link(place, directory / "second")
    os.chown(place, 1001, 1002)
    os.setxattr(place, "user.note", b"kept")
    if shutil.which("setfacl"):
        subprocess.run(["setfacl", "-m", "u:1003:rw", str(place)], check=False)
    before = attributes(place)
    assert moved(engine, site, directory / "second", site.in_pool(site.flash)).result is MoveResult.DONE
    assert attributes(place) == before
    status = place.stat()
    assert (status.st_uid, status.st_gid, status.st_nlink) == (1001, 1002, 2)
    assert site.pools_of(place) == site.pools_of(directory / "second") == [site.flash]
    ledger.enter(place)
