"""Moves from one OST to others of the same pool: the layout names them, and both engines place the copy there."""

from dataclasses import replace

import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.act.gate_world import FINDING, World
from tests.tierd.act.movers.both_engines import Both
from tests.tierd.act.movers.fakelfs import FakeLfs
from tests.tierd.act.movers.minilustre import PAGE
from tierd.act.movers.engines import OTHER_ENGINE
from tierd.act.movers.moves import MoveResult
from tierd.acts import ActKind, Outcome
from tierd.model import Action

DATA = b"first page".ljust(20 * PAGE, b"x")
ONE = Layout((Component(pool="hdd"),), composite=False)
PFL = Layout((Component(0, 16 * PAGE, pool="hdd"), Component(16 * PAGE, None, pool="hdd", stripe_count=2)))


def elsewhere(layout: Layout, *lists: tuple[int, ...]) -> Layout:
    """The layout as requested, with these OSTs."""
    return replace(layout, components=tuple(
        replace(part, objects=(), stripe_count=len(osts) or part.stripe_count, ost_list=osts)
        for part, osts in zip(layout.components, lists, strict=True)))


def engine(kind: str, *wanted: Layout, present: Layout = PFL) -> Both:
    both = Both(kind, present, DATA)
    both.lfs.layouts |= FakeLfs(both.lustre, wanted).layouts
    return both


@pytest.mark.parametrize(("kind", "present", "osts"), [("lease", PFL, ((4,), (3, 5))), ("lfs", ONE, ((4,),))])
def test_every_stripe_gets_the_ost_that_the_layout_names(kind: str, present: Layout,
                                                         osts: tuple[tuple[int, ...], ...]) -> None:
    wanted = elsewhere(present, *osts)
    both = engine(kind, wanted, present=present)
    assert both.move(wanted).result is MoveResult.DONE
    placed = tuple(tuple(one.ost_index for one in part.objects) for part in both.node.store.layout.components)
    assert placed == osts
    assert both.lustre.contents("/a") == DATA
    assert both.move(wanted).result is MoveResult.ALREADY


def test_lfs_gets_no_file_with_several_objects() -> None:
    """It takes a short read for the end of the file: the read of one whose second object cannot be read."""
    both = engine("lfs", PFL)
    outcome = both.move(elsewhere(PFL, (4,), (3, 5)))
    assert (outcome.result, outcome.reason) == (MoveResult.REFUSED, "several-objects")
    assert outcome.reason in OTHER_ENGINE
    assert not both.lfs.commands


def test_a_file_larger_than_its_first_component_moves(world: World) -> None:
    before = world.lustre.create("/long", DATA, PFL).store.layout
    wanted = elsewhere(PFL, (4,), (3, 5))
    world.gate.submit([Action(ActKind.MIGRATE, wanted, "because", FINDING.key, "/", "/long", len(DATA))], world.finding)
    assert world.pump() == {"done": 1}
    (entry,) = world.journal.entries(Outcome.DONE)
    assert entry.layout_after == wanted
    assert world.undo(entry, "by tierctl") == ("undone", "by tierctl")
    found = world.lustre.names["/long"].store.layout
    assert [[o.ost_index for o in part.objects] for part in found.components] == [
        [o.ost_index for o in part.objects] for part in before.components], "on the OSTs that held it before"
    assert world.lustre.contents("/long") == DATA
