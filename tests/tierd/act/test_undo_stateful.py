"""Default layouts that tierd set are undone in any order to what would be there without tierd."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lustre.fid import Fid
from lustre.layout.model import Component, Layout
from tests.tierd.act.gate_world import World
from tests.tierd.act.miniport import MiniPort
from tests.tierd.act.movers.minilustre import FLASH, HDD
from tierd.act.undo import SEARCH_SECONDS, Undo, close_unfinished
from tierd.acts import Outcome

TWO, FOUR = (Layout((Component(0, size << 20, "flash"), Component(size << 20, None, "hdd"))) for size in (2, 4))
LAYOUTS: dict[str, Layout | None] = {"none": None, "hdd": HDD, "flash": FLASH, "two": TWO, "four": FOUR}
STEP_SECONDS = 200.0
"""Between two steps: more than clocks may differ."""
MOST_DIRECTORIES = 8


class Slow(MiniPort):
    """Listings take a while."""

    def __init__(self, world: World) -> None:
        super().__init__(world.lustre)
        self.defaults = world.port.defaults
        self.clock, self.listing_seconds = world.clock, 0.0

    def subdirectories(self, directory: str) -> list[str]:
        self.clock.at += self.listing_seconds
        return super().subdirectories(directory)


class Steps(RuleBasedStateMachine):
    """Acts, new directories, renamed ones and undo in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self.folder.name))
        self.port = Slow(self.world)
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
        self.world.clock.at += STEP_SECONDS
        paths = sorted(self.port.defaults)
        return paths[number % len(paths)]

    def set_default(self, path: str, layout: Layout) -> str:
        return self.world.default(layout, path).result

    def make_directory(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        self.port.make(path)
        self.without[self.fid(path)] = self.without[self.fid(parent)]
        self.port.times |= dict.fromkeys((self.fid(path), self.fid(parent)), self.world.clock.at)

    @rule(number=st.integers(0, MOST_DIRECTORIES), layout=st.sampled_from((FLASH, TWO, FOUR)))
    def act(self, number: int, layout: Layout) -> None:
        self.set_default(self.chosen(number), layout)

    @rule(number=st.integers(0, MOST_DIRECTORIES))
    def make(self, number: int) -> None:
        parent = self.chosen(number)
        if len(self.port.defaults) < MOST_DIRECTORIES:
            self.make_directory(f"{parent}/{next(self.names)}")

    @rule(number=st.integers(0, MOST_DIRECTORIES))
    def rename(self, number: int) -> None:
        path = self.chosen(number)
        if self.world.journal.undoing():
            return  # a search may miss it
        self.port.rename(path, f"{path.rpartition('/')[0]}/{next(self.names)}")

    @rule(numbers=st.lists(st.integers(0, 5), min_size=1, max_size=3))
    def undo_some(self, numbers: list[int]) -> None:
        self.world.clock.at += STEP_SECONDS
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
        list(close_unfinished(self.world.journal, self.port, self.world.clock.at))

    @rule()
    def go_on(self) -> None:
        for entry in self.world.journal.undoing():
            assert self.undo(entry, "because").restored

    @invariant()
    def the_last_act_in_force_holds(self) -> None:
        wanted = {entry.fid: entry.after for entry in self.world.journal.entries(Outcome.DONE)}
        for path, default in self.port.defaults.items():
            assert default == wanted.get(self.fid(path), default)

    def follow(self, steps: str) -> None:
        """Steps by name. ``give`` is of a directory's owner, who may make it; acts are counted from 1."""
        for step in steps.split(", "):
            self.world.clock.at += STEP_SECONDS
            match step.split():
                case ["act", path, layout]:
                    assert self.set_default(path, LAYOUTS[layout]) == "done"  # type: ignore[arg-type]
                case ["give", path, layout]:
                    self.port.defaults[path] = LAYOUTS[layout]
                    self.without[self.fid(path)] = LAYOUTS[layout]
                    self.port.times.setdefault(self.fid(path), self.world.clock.at)
                case ["make", path]:
                    self.make_directory(path)
                case ["rename", path, to]:
                    self.port.rename(path, to)
                case ["undo", *numbers]:
                    for number in numbers:
                        assert self.undo(self.world.journal.entries()[int(number) - 1], "because").restored
                case _:
                    self.slow(SEARCH_SECONDS + 1)
            self.the_last_act_in_force_holds()


@contextmanager
def followed(steps: str) -> Iterator[dict[str, Layout | None]]:
    """The defaults after some steps. At the end, all acts are undone."""
    state = Steps()
    state.follow(steps)
    yield dict(state.port.defaults)
    state.teardown()


BELOW = "act /d flash, make /d/new, make /d/new/earlier, make /d/new/earlier/still, act /d/new four, make /d/new/later"
ALL_HDD = "/d hdd, /d/new hdd, /d/new/earlier hdd, /d/new/earlier/still hdd, /d/new/later hdd, /x none"
TWICE = ("act /x flash, act /d flash, make /d/0, make /d/0/1, act /d two, act /d flash, make /d/0/1/2, "
         "make /d/0/1/2/3")
OLDER = "give /d/old flash, act /d flash, act /d/old four"


@pytest.mark.parametrize(("steps", "left"), [
    ("give /d/own none, act /d flash, act /d/own flash, make /d/own/below, undo 1",
     "/d hdd, /d/own flash, /d/own/below flash, /x none"),
    (f"{BELOW}, undo 1 2", ALL_HDD),
    (f"{BELOW}, undo 2 1", ALL_HDD),
    (f"{OLDER}, undo 1 2", "/d hdd, /d/old flash, /x none"),
    (f"{OLDER}, undo 2 1", "/d hdd, /d/old flash, /x none"),
    ("give /d/own none, act /d/own flash, act /d flash, act /d/own four, undo 2 3", "/d hdd, /d/own flash, /x none"),
    ("act /d flash, make /d/new, act /d/new four, act /d/new flash, act /d/new two, undo 1 4",
     "/d hdd, /d/new flash, /x none"),
    ("act /d flash, rename /d /e, give /d hdd, give /d/own flash, act /d/own four, undo 1 2",
     "/d hdd, /d/own flash, /e hdd, /x none"),
    ("act /d flash, rename /d /e, make /e/new, act /e/new four, rename /e /f, undo 1 2", "/f hdd, /f/new hdd, /x none"),
    ("act /d flash, make /d/new, act /d/new four, rename /d/new /moved, undo 1 2", "/d hdd, /moved hdd, /x none"),
    ("act /d flash, make /d/first, act /d four, act /d flash, make /d/third, undo 1",
     "/d flash, /d/first hdd, /d/third flash, /x none"),
    ("act /d flash, give /d2 flash, act /d2 four, undo 1 2", "/d hdd, /d2 flash, /x none"),
    ("give /d/run none, act /d flash, act /d/run flash, rename /d/run /d/run.1, make /d/run, undo 1",
     "/d hdd, /d/run hdd, /d/run.1 flash, /x none"),
], ids=[
    "an act below with the same default stays", "inherited by the directory of an act below", "the later act first",
    "an act over an older default restores it", "an act over an older default is undone first",
    "an act over the default of an earlier act restores that", "the act before the last one is in force",
    "another directory with the former name is not above", "a directory that was renamed twice is above",
    "a directory that was moved away", "a later act gave the same default", "a name that begins with another",
    "mv run run.1 and mkdir run",
])
def test_undo_leaves_what_other_acts_and_owners_gave(steps: str, left: str) -> None:
    with followed(steps) as defaults:
        assert defaults == {path: LAYOUTS[layout] for path, layout in map(str.split, left.split(", "))}


@pytest.mark.parametrize("steps", [
    "act /x flash, act /d flash, act /d two, make /d/0, make /d/1, make /d/0/2, act /d/0 flash",
    "act /d flash, act /d two, make /d/0, make /d/0/1, slow, act /d flash, act /d/0 flash",
    "act /d flash, make /d/0, make /d/0/1, make /d/2, act /d two, act /d flash, make /d/0/3",
    "act /x flash, act /d flash, make /d/0, make /d/0/1, make /d/2, act /d two, act /d flash, make /d/0/1/3",
    f"{TWICE}, act /d/0/1/2 two, undo 1",
    f"{TWICE}, act /d/0/1/2/3 two, act /d/0 two",
    "act /d flash, make /d/0, make /d/0/1, act /d/0 four, make /d/0/2, make /d/0/2/3, slow, undo 2 1",
    *(", ".join([*(f"act /d {layout}, make /d/{number}" for number, layout in enumerate(layouts)), f"undo {first}"])
      for layouts in (("flash", "two", "four"), ("flash", "two", "flash"), ("two", "flash", "two"),
                      ("flash", "two", "flash", "four"), ("flash", "two", "flash", "two"),
                      ("four", "flash", "two", "flash"))
      for first in range(1, len(layouts) + 1)),
])
def test_all_acts_are_undone_whichever_is_the_first(steps: str) -> None:
    """A directory may have its default by either of two acts, so its time decides which undo restores it."""
    with followed(steps):
        pass


TestSteps = Steps.TestCase
TestSteps.settings = settings(max_examples=30, stateful_step_count=15, deadline=None,
                              suppress_health_check=[HealthCheck.too_slow])
