"""Default layouts that tierd set are undone in any order to what would be there without tierd."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lustre.fid import Fid
from lustre.filesystem import FileStatus
from lustre.layout.model import Component, Layout
from tests.tierd.act.gate_world import FINDING, World, submitted
from tests.tierd.act.miniport import MiniPort
from tests.tierd.act.movers.minilustre import FLASH
from tierd.act.undo import SEARCH_SECONDS, Undo, close_unfinished
from tierd.acts import ActKind, Outcome
from tierd.model import Action

LAYOUTS = [FLASH, *(Layout((Component(0, size << 20, "flash"), Component(size << 20, None, "hdd"))) for size in (2, 4))]
STEP_SECONDS = 200.0
"""Between two steps: more than clocks may differ."""
MOST_DIRECTORIES = 8


class Dated(MiniPort):
    """Directories have times."""

    def __init__(self, world: World) -> None:
        super().__init__(world.lustre)
        self.defaults = world.port.defaults
        self.times: dict[Fid, float] = {}
        self.clock, self.listing_seconds = world.clock, 0.0

    def subdirectories(self, directory: str) -> list[str]:
        self.clock.time += self.listing_seconds
        return super().subdirectories(directory)

    def status(self, path: str) -> FileStatus:
        found = super().status(path)
        return replace(found, mtime=self.times.get(found.fid, found.mtime))


class Steps(RuleBasedStateMachine):
    """Acts, new directories, renamed ones and undo in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self.folder.name))
        self.port = Dated(self.world)
        self.port.defaults["/x"] = None
        self.world.gate.default_layouts.filesystem = self.port
        self.undo = Undo(self.port, self.world.engine, self.world.journal, self.world.clock)
        self.without = {self.fid(path): layout for path, layout in self.port.defaults.items()}
        """Defaults as they would be without tierd."""
        self.names = iter(range(1000))

    def teardown(self) -> None:
        self.undo_some(list(range(1000)))
        self.port.listing_seconds = 0.0
        while self.world.journal.undoing():
            self.go_on()
        assert {path: self.without[self.fid(path)] for path in self.port.defaults} == self.port.defaults
        self.folder.cleanup()

    def fid(self, path: str) -> Fid:
        return self.port.status(path).fid

    def chosen(self, number: int) -> str:
        self.world.clock.time += STEP_SECONDS
        paths = sorted(self.port.defaults)
        return paths[number % len(paths)]

    @rule(number=st.integers(0, MOST_DIRECTORIES), layout=st.sampled_from(LAYOUTS))
    def act(self, number: int, layout: Layout) -> None:
        action = Action(ActKind.SET_DEFAULT_LAYOUT, layout, "because", FINDING.key, self.chosen(number))
        submitted(self.world.gate, [action], self.world.finding)

    @rule(number=st.integers(0, MOST_DIRECTORIES))
    def make(self, number: int) -> None:
        parent = self.chosen(number)
        if len(self.port.defaults) < MOST_DIRECTORIES:
            path = f"{parent}/{next(self.names)}"
            self.port.defaults[path] = self.port.defaults[parent]
            self.without[self.fid(path)] = self.without[self.fid(parent)]
            self.port.times |= dict.fromkeys((self.fid(path), self.fid(parent)), self.world.clock.time)

    @rule(number=st.integers(0, MOST_DIRECTORIES))
    def rename(self, number: int) -> None:
        path = self.chosen(number)
        if self.world.journal.undoing():
            return  # a search may miss it
        self.port.rename(path, f"{path.rpartition('/')[0]}/{next(self.names)}")

    @rule(numbers=st.lists(st.integers(0, 5), min_size=1, max_size=3))
    def undo_some(self, numbers: list[int]) -> None:
        self.world.clock.time += STEP_SECONDS
        for number in numbers:
            entries = self.world.journal.entries(Outcome.DONE)
            if entries:
                assert self.undo(entries[number % len(entries)], "because").restored

    @rule(seconds=st.sampled_from([0.0, SEARCH_SECONDS + 1]))
    def slow(self, seconds: float) -> None:
        """How long the file system needs for a listing."""
        self.port.listing_seconds = seconds

    @rule()
    def restart(self) -> None:
        self.undo = Undo(self.port, self.world.engine, self.world.journal, self.world.clock)
        list(close_unfinished(self.world.journal, self.port, self.world.clock.time))

    @rule()
    def go_on(self) -> None:
        for entry in self.world.journal.undoing():
            assert self.undo(entry, "because").restored

    @invariant()
    def the_last_act_in_force_holds(self) -> None:
        wanted = {entry.fid: entry.after for entry in self.world.journal.entries(Outcome.DONE)}
        for path, default in self.port.defaults.items():
            assert default == wanted.get(self.fid(path), default)


@pytest.mark.parametrize("steps", [
    "a0 b0 m0 m0 m1 a1", "a0 b0 m0 m1 slow a0 a1", "a0 m0 m1 m0 b0 a0 m1", "a0 m0 m1 m0 b0 a0 m2",
    "a0 m0 m1 b0 a0 m2 m3 b3 u0", "a0 m0 m1 b0 a0 m2 m3 b4 b1"])
def test_a_default_that_was_set_twice_is_undone_below_too(steps: str) -> None:
    """A directory may have it by either act, so its time decides which undo restores it."""
    state = Steps()
    state.act(number=1, layout=FLASH)  # in another directory
    for step in steps.split():
        match step[0]:
            case "m":
                state.make(number=int(step[1]))
            case "u":
                state.undo_some([int(step[1])])
            case "s":
                state.slow(seconds=SEARCH_SECONDS + 1)
            case which:
                state.act(number=int(step[1]), layout=LAYOUTS[which == "b"])
    state.teardown()


TestSteps = Steps.TestCase
TestSteps.settings = settings(max_examples=30, stateful_step_count=15, deadline=None,
                              suppress_health_check=[HealthCheck.too_slow])
