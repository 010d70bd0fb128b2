"""Data on the MDT and stripes, on a real file system: chosen layouts as defaults, moves there and back, and undo."""

import os
import time
from pathlib import Path

import pytest

from lustre.layout.model import Component, Layout, same_shape
from lustre.mounted import oldest_release
from tests.acceptance.ledger import Ledger
from tests.acceptance.site import MIB, Site, made, moved, noise
from tests.acceptance.test_gate import Tierd
from tierd.act.movers.moves import Move, MoveOutcome, Mover, MoveResult
from tierd.acts import Outcome
from tierd.decide import restripe
from tierd.model import MetadataTargets
from tierd.sense.parameters import data_limits, metadata_spaces

END = 64 << 10
DEFAULT_THRESHOLD = 0.5
"""Free share of an MDT below which Lustre lowers its limit for data, unless ``dom_threshold_free_mb`` is set."""
CLOSED_SECONDS = 15.0


def on_mdt(site: Site) -> Layout:
    return Layout((Component(0, END, pattern="mdt"), Component(END, None, site.hdd)))


def striped(site: Site, count: int, *, overstriped: bool = False) -> Layout:
    return Layout((restripe.striped(site.hdd, count, MIB, overstriped=overstriped),), composite=False)


@pytest.fixture
def mdts_take_data(site: Site) -> None:
    """Skips where an MDT may shorten or refuse a component of 64 KiB.

    The limit shows on an MDS only. Lustre lowers it below ``lod.*.dom_threshold_free_mb`` free, by default half of the
    MDT, so on a client the free space decides.
    """
    spaces = metadata_spaces(site.tree, site.mount.fsname)
    if not spaces:
        pytest.skip("the free space of an MDT is unknown: mdc.*.kbytesfree cannot be read")
    limits = {mdt: limit for mdt, limit in data_limits(site.tree).items() if mdt.startswith(f"{site.mount.fsname}-")}
    low = sorted(mdt for mdt, limit in limits.items() if limit < END)
    if low:
        pytest.skip(f"lod.*.dom_stripesize, or dom_stripesize_cur_kb, is below 64 KiB on {', '.join(low)}")
    free = MetadataTargets(spaces).free_share
    if len(limits) < site.mdt_count and free <= DEFAULT_THRESHOLD:
        pytest.skip(f"an MDT is {1 - free:.0%} full and may take no data; only an MDS shows the limit")


on_mdts = pytest.mark.usefixtures("mdts_take_data")


@on_mdts
@pytest.mark.parametrize("size", [0, 1, 1000, END, END + 1, 5 * MIB])
def test_a_file_goes_to_the_mdt_and_back(site: Site, engine: Mover, directory: Path, ledger: Ledger, size: int) -> None:
    """Lustre mirrors, synchronises and splits. The file keeps its FID, its data and its times."""
    place = made(site, directory / "a", noise(size, size))
    fid = site.filesystem.status(site.name(place)).fid
    outcome = moved(engine, site, place, on_mdt(site))
    assert outcome.result is MoveResult.DONE, outcome.detail
    assert same_shape(site.layout(place), on_mdt(site))
    assert site.filesystem.status(site.name(place)).fid == fid
    assert int(place.stat().st_mtime) == 1_500_000_000
    site.forget_everything()
    assert place.read_bytes() == noise(size, size)
    back = moved(engine, site, place, site.in_pool(site.hdd))
    assert back.result is MoveResult.DONE, back.detail
    assert site.pools_of(place) == [site.hdd]
    assert int(place.stat().st_mtime) == 1_500_000_000
    site.forget_everything()
    assert place.read_bytes() == noise(size, size)
    ledger.enter(place)


@on_mdts
def test_many_files_go_to_the_mdt(site: Site, engine: Mover, directory: Path, ledger: Ledger) -> None:
    places = [made(site, directory / f"{n}", noise(100 + 700 * n, n)) for n in range(100)]
    outcomes = list(engine.move([Move(site.name(place), on_mdt(site)) for place in places]))
    assert {outcome.result for outcome in outcomes} == {MoveResult.DONE}, {o.detail for o in outcomes}
    for number, place in enumerate(places):
        assert place.read_bytes() == noise(100 + 700 * number, number)
        ledger.enter(place)


@on_mdts
def test_a_file_that_is_open_for_writing_does_not_go_to_the_mdt(site: Site, engine: Mover, directory: Path) -> None:
    place = made(site, directory / "a", noise(1000, 1))
    with place.open("r+b"):
        outcome = moved(engine, site, place, on_mdt(site))
    assert outcome.result is MoveResult.GAVE_WAY, outcome.detail
    assert site.pools_of(place) == [site.hdd]
    assert site.layout(place).mirror_count == 1


@on_mdts
def test_data_on_the_mdt_as_a_default_and_its_undo(site: Site, engine: Mover, directory: Path, tmp_path: Path) -> None:
    at = Tierd(site, engine, tmp_path)
    before = site.filesystem.layout(site.name(directory))
    assert at.set_default(directory, on_mdt(site)).result == Outcome.DONE
    (entry,) = at.journal.entries(Outcome.DONE)
    (directory / "new").write_bytes(b"tiny")
    assert site.layout(directory / "new").components[0].on_mdt
    assert at.undo(entry, "acceptance").outcome == Outcome.UNDONE
    after = site.filesystem.layout(site.name(directory))
    assert before is not None
    assert after is not None
    assert same_shape(before, after)


def moved_after_close(engine: Mover, site: Site, place: Path, layout: Layout) -> MoveOutcome:
    """A move of a file that was closed a moment ago.

    A client may keep the handle of a file that was opened often (``llite.*.opencache_threshold_count``), until the
    lease takes it away.
    """
    until = time.monotonic() + CLOSED_SECONDS
    while (outcome := moved(engine, site, place, layout)).result is MoveResult.GAVE_WAY and time.monotonic() < until:
        time.sleep(0.5)
    return outcome


@pytest.mark.parametrize("overstriped", [False, True])
def test_a_closed_shared_file_is_restriped_and_undone(site: Site, engine: Mover, directory: Path, ledger: Ledger,
                                                      overstriped: bool) -> None:
    targets = len(site.filesystem.pools()[site.hdd])
    if overstriped and oldest_release(site.tree, site.mount.fsname) < (2, 13):
        pytest.skip("this client, or a server, does not know overstriping (Lustre 2.13)")
    if targets < 2 and not overstriped:
        pytest.skip(f"pool {site.hdd} has one target: a file there has one stripe")
    data = noise(9 * MIB, 5)
    place = made(site, directory / "shared", data, "-c 1 -S 1M -p {hdd}")
    wanted = striped(site, 2 * targets if overstriped else targets, overstriped=overstriped)
    writers = [os.open(place, os.O_RDWR) for _ in range(8)]
    assert moved(engine, site, place, wanted).result is MoveResult.GAVE_WAY, "it is open"
    for writer in writers:
        os.close(writer)
    outcome = moved_after_close(engine, site, place, wanted)
    assert outcome.result is MoveResult.DONE, outcome.detail
    (component,) = site.layout(place).components
    assert len(component.objects) == wanted.components[0].stripe_count
    assert (component.overstriped, component.stripe_size) == (overstriped, MIB)
    site.forget_everything()
    assert place.read_bytes() == data
    assert moved(engine, site, place, site.in_pool(site.hdd)).result is MoveResult.DONE
    assert len(site.layout(place).components[0].objects) == 1
    ledger.enter(place)


def test_new_files_get_stripes_beyond_their_first_component(site: Site, engine: Mover, directory: Path,
                                                            tmp_path: Path) -> None:
    targets = len(site.filesystem.pools()[site.hdd])
    if targets < 2:
        pytest.skip(f"pool {site.hdd} has one target: a file there has one stripe")
    layout = restripe.with_stripes(None, restripe.striped(site.hdd, targets, MIB), 4 * MIB)
    assert layout is not None
    assert Tierd(site, engine, tmp_path).set_default(directory, layout).result == Outcome.DONE
    (directory / "small").write_bytes(noise(1000, 1))
    (directory / "large").write_bytes(noise(6 * MIB, 2))
    small, large = site.layout(directory / "small"), site.layout(directory / "large")
    assert [len(component.objects) for component in small.components] == [1, 0]
    assert [len(component.objects) for component in large.components] == [1, targets]
