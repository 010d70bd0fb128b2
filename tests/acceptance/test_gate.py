"""What tierd does as a whole on a real file system: through its gate, with its journal, and back again."""

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lustre.layout.model import Layout, same_shape
from tests.acceptance.ledger import Ledger
from tests.acceptance.site import Site, checksum, made, noise
from tests.tierd.act.gate_world import submitted
from tierd.act.gate import Gate
from tierd.act.journal.writer import Journal
from tierd.act.limits import Budget, CircuitBreaker
from tierd.act.movers.moves import Mover
from tierd.act.operating_state import MaintenanceGuard
from tierd.act.outcomes import CompletedAct
from tierd.act.undo import Undo, close_unfinished
from tierd.acts import ActKind, Outcome
from tierd.clock import SystemClock
from tierd.config.act import Limits, Rate
from tierd.model import Action, Evidence, Finding

FINDING = Finding("noisy-neighbour", 1.0, "noise", "stream", (), "acceptance", Evidence(), ())
PLENTY = Rate(1e6, 1e12)


@dataclass
class Tierd:
    """A gate over the mount, with a journal in a folder of its own."""

    site: Site
    engine: Mover
    folder: Path
    dry_run: bool = False
    gate: Gate = field(init=False)
    undo: Undo = field(init=False)
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        clock, still = SystemClock(), MaintenanceGuard(str(self.folder / "pause"))
        self.journal = Journal(self.folder / "journal.sqlite")
        budget = Budget(Limits(1e6, 1e12, per_pool=PLENTY, per_target=PLENTY), clock.now())
        self.gate = Gate(self.site.filesystem, self.engine, budget, CircuitBreaker(), self.journal, clock, self.dry_run,
                         maintenance=still)
        self.undo = Undo(self.site.filesystem, self.engine, self.journal, clock, still.pause_file_refusal)

    def move(self, *places: Path) -> list[str]:
        """Results of moving these to flash, in their order."""
        finding = self.journal.add_finding(FINDING)
        self.gate.submit([Action(ActKind.MIGRATE, self.site.in_pool(self.site.flash), "acceptance", FINDING.key,
                                 self.site.name(place.parent), self.site.name(place), place.stat().st_size)
                          for place in places], finding)
        outcomes = {o.action.path: o.result for o in self.gate.pump(time.time() + 600)}
        return [outcomes.get(self.site.name(place), "waits") for place in places]

    def set_default(self, place: Path, layout: Layout) -> CompletedAct:
        """What becomes of a default layout."""
        action = Action(ActKind.SET_DEFAULT_LAYOUT, layout, "acceptance", FINDING.key, self.site.name(place))
        (outcome,) = submitted(self.gate, [action], self.journal.add_finding(FINDING))
        return outcome


@pytest.fixture
def tierd(site: Site, engine: Mover, tmp_path: Path) -> Tierd:
    return Tierd(site, engine, tmp_path)


def test_moves_are_in_the_journal_and_can_be_undone(tierd: Tierd, site: Site, directory: Path, ledger: Ledger) -> None:
    places = [made(site, directory / str(n), noise(20_000, n)) for n in range(5)]
    assert tierd.move(*places) == ["done"] * 5
    assert {site.pools_of(place)[0] for place in places} == {site.flash}
    for entry in list(tierd.journal.entries(Outcome.DONE)):
        assert tierd.undo(entry, "acceptance") == ("undone", "acceptance")
    for number, place in enumerate(places):
        assert site.pools_of(place) == [site.hdd]
        assert place.read_bytes() == noise(20_000, number)
        ledger.enter(place)


def test_a_file_that_had_no_pool_goes_back_to_targets_of_the_pool_it_lay_in(
        tierd: Tierd, site: Site, directory: Path, ledger: Ledger) -> None:
    first = int(site.filesystem.pools()[site.hdd][0][-4:], 16)
    site.lfs("setstripe", "-d", str(directory))  # from which Lustre 2.17 would take the pool
    place = made(site, directory / "plain", noise(30_000, 1), f"-c 1 -i {first}")
    assert not site.layout(place).components[0].pool
    assert tierd.move(place) == ["done"]
    (entry,) = tierd.journal.entries(Outcome.DONE)
    result, detail = tierd.undo(entry, "acceptance")
    assert result == "undone", detail
    assert site.pools_of(place)[0] not in {"", site.flash}
    assert place.read_bytes() == noise(30_000, 1)
    ledger.enter(place)


def test_copied_layouts_in_new_directories_are_undone_too(tierd: Tierd, site: Site, directory: Path) -> None:
    place = directory / "passes-on"
    (place / "before").mkdir(parents=True)
    before = site.filesystem.layout(site.name(place))
    outcome = tierd.set_default(place, site.pfl())
    assert outcome.result == "done", outcome.detail
    made = (place / "after", place / "after" / "deeper")
    for one in made:
        one.mkdir()
        found = site.filesystem.layout(site.name(one))
        assert found is not None
        assert same_shape(found, site.pfl())
    (entry,) = tierd.journal.entries(Outcome.DONE)
    assert tierd.undo(entry, "acceptance") == ("undone", "acceptance; also restored 2 directories created below")
    for one in (place, *made):
        after = site.filesystem.layout(site.name(one))
        assert (after is None) == (before is None)
        assert after is None or before is None or same_shape(after, before)


@pytest.mark.parametrize("shape", ["-c 2", "-E 1M -c 1 -E -1 -c 2"])
def test_a_default_without_a_pool_is_restored_without_one(tierd: Tierd, site: Site, directory: Path,
                                                          shape: str) -> None:
    place = directory / "no-pool"
    place.mkdir()
    site.lfs("setstripe", "-d", str(place))
    site.lfs("setstripe", *shape.split(), str(place))
    said = site.lfs("getstripe", "-d", "-y", str(place))
    outcome = tierd.set_default(place, site.pfl())
    assert outcome.result == "done", outcome.detail
    (entry,) = tierd.journal.entries(Outcome.DONE)
    assert tierd.undo(entry, "acceptance") == ("undone", "acceptance")
    assert site.lfs("getstripe", "-d", "-y", str(place)).split() == said.split()


@pytest.mark.parametrize("shape", ["-c 1 -i 1", "-o 1,0", "-N -p {flash} -N -p {hdd}"])
def test_a_default_that_cannot_be_restored_is_left(tierd: Tierd, site: Site, directory: Path, shape: str) -> None:
    place = directory / "pinned"
    place.mkdir()
    site.lfs("setstripe", "-d", str(place))
    site.lfs("setstripe", *shape.format(flash=site.flash, hdd=site.hdd).split(), str(place))
    said = site.lfs("getstripe", "-d", "-y", str(place))
    outcome = tierd.set_default(place, site.pfl())
    assert outcome.result == "refused", outcome.detail
    assert site.lfs("getstripe", "-d", "-y", str(place)) == said


def test_a_dry_run_and_a_pause_change_nothing(site: Site, engine: Mover, directory: Path, tmp_path: Path) -> None:
    place = made(site, directory / "a", noise(10_000, 1))
    layout, digest = site.layout(place), checksum(place)
    tierd = Tierd(site, engine, tmp_path, dry_run=True)
    assert tierd.move(place) == ["dry-run"]
    (tmp_path / "pause").touch()
    assert Tierd(site, engine, tmp_path).move(place) == ["waits"]
    assert (site.layout(place), checksum(place)) == (layout, digest)


def test_what_was_under_way_is_closed_by_a_look(tierd: Tierd, site: Site, directory: Path) -> None:
    moved, left = (made(site, directory / name, noise(10_000, 1)) for name in ("moved", "left"))
    assert tierd.move(moved) == ["done"]
    number = tierd.journal.add_finding(FINDING)
    for place in (moved, left):
        move = Action(ActKind.MIGRATE, site.in_pool(site.flash), "", FINDING.key, "", site.name(place))
        tierd.journal.intend(move, number, None, 1.0, False, site.filesystem.status(site.name(place)).fid)
    closed = {entry.place: outcome for entry, outcome, _ in close_unfinished(tierd.journal, site.filesystem, 2.0)}
    assert closed == {site.name(moved): "done", site.name(left): "interrupted"}
