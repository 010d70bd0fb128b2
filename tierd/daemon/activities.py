"""The activities of the daemon: each runs in its own rhythm, in a thread of its own, and reports its state.

What one activity waits for holds up no other: a file system that takes two seconds for each call slows down planning,
and neither the status nor the moves; a source that takes ten seconds to answer delays the status, and nothing else.
Without threads, in a simulation or a test, one step of each runs in turn.

Liveness, for the watchdog and for HTTP health checks, rests on the observation of the counters, which never waits for
the file system.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tierd.act.journal.connection import journal_errors
from tierd.act.journal.entry import Entry
from tierd.act.journal.reader import JournalReader
from tierd.act.movers.parallel import name_thread_as_process
from tierd.clock import Clock
from tierd.config.settings import Settings
from tierd.text import quoted

REPORTED_AFTER_SECONDS = 60.0
"""A step that lasts longer is reported once, with what it waits for."""
STOP_SECONDS = 5.0
"""So long is waited for an activity that changes nothing when the daemon stops."""
FILESYSTEM_AWAY = "the file system, or a server of it, does not answer (lfs check servers); it goes on when it does"


@dataclass(frozen=True, slots=True)
class ActivityState:
    """How an activity stands."""

    name: str
    doing: str
    """In words: ``moving files``."""
    begun_at: float
    """Beginning of the step under way; 0 between two steps."""
    waits_for: str
    """What a step that has lasted long waits for; "" where nobody has looked."""
    last_seconds: float
    """Duration of the last step that ended."""


class Wake(Protocol):
    """An event, as :class:`threading.Event` has it."""

    def set(self) -> None:
        """End the present wait, or the next one."""

    def clear(self) -> None:
        """Let the next wait last."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set, or for so many seconds; whether it is set."""


class Activity:
    """A step that runs again and again, and the pause between two runs."""

    def __init__(self, name: str, doing: str, step: Callable[[], object], pause_seconds: Callable[[], float],
                 clock: Clock, *, acts: bool = False, driven: bool = False) -> None:
        """``pause_seconds`` gives the time from the end of a step to the next one, unless :attr:`wake` is set before.

        ``acts``: it changes the file system, so the daemon waits for the end of its step before it stops.
        ``driven``: whoever drives the daemon runs it, and it has no thread.
        """
        self.name = name
        self.acts = acts
        self.driven = driven
        self.pause_seconds = pause_seconds
        self._doing = doing
        self._step = step
        self._clock = clock
        self._begun_at = 0.0
        self._last_seconds = 0.0
        self.waits_for = ""
        self.reported_of = 0.0
        """Beginning of the step that was reported as long."""
        self.wake: Wake = threading.Event()
        """Set when there may be work, so that the next step begins at once."""

    @property
    def state(self) -> ActivityState:
        """How it stands now."""
        return ActivityState(self.name, self._doing, self._begun_at, self.waits_for, self._last_seconds)

    def run(self) -> None:
        """One step."""
        with self.under_way():
            self._step()

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """While a step runs."""
        begun = self._begun_at = self._clock.now()
        try:
            yield
        finally:
            self._begun_at, self.waits_for = 0.0, ""
            self._last_seconds = max(0.0, self._clock.now() - begun)


Spawn = Callable[[Activity], Wake]
"""Runs an activity again and again; returns the event that wakes it."""


class Activities:
    """All of them, in the order of a turn. One is run by whoever drives the daemon, the others by threads."""

    def __init__(self, activities: list[Activity], journal_path: str, clock: Clock, say: Callable[[str], None]) -> None:
        self._all = activities
        self._journal_path = journal_path
        self._reader = JournalReader(Path(journal_path))
        self._clock = clock
        self._say = say
        self._stopping = threading.Event()
        self._threads: dict[Activity, threading.Thread] = {}
        self.concurrent = False
        """Whether they go on beside each other, and no more in turn."""
        self._failure: BaseException | None = None

    @property
    def states(self) -> list[ActivityState]:
        """How each stands."""
        return [activity.state for activity in self._all]

    def driven_since(self) -> float:
        """Beginning of the step under way that keeps whoever drives the daemon; 0 between two steps."""
        return max(each.state.begun_at for each in self._all if each.driven or not self.concurrent)

    def start(self, spawn: Spawn | None = None) -> None:
        """Give each a thread of its own, but the one that is driven; or leave them to ``spawn``."""
        self.concurrent = True
        for activity in self._all:
            if not activity.driven:
                activity.wake = (spawn or self._in_a_thread)(activity)

    def _in_a_thread(self, activity: Activity) -> Wake:
        thread = threading.Thread(target=self._go_on, args=(activity,), name=f"tierd-{activity.name}", daemon=True)
        self._threads[activity] = thread
        thread.start()
        return activity.wake

    def run(self) -> None:
        """One step of the driven one; without threads one of each, in turn. Raises what an activity has failed with."""
        if self._failure is not None:
            raise self._failure
        for activity in self._all:
            if activity.driven or not self.concurrent:
                activity.run()
        self.wake()

    def wake(self, *names: str) -> None:
        """Let the next step of these activities begin now, or of all if none is named. For any thread."""
        for activity in self._all:
            if not names or activity.name in names:
                activity.wake.set()

    def _go_on(self, activity: Activity) -> None:
        name_thread_as_process()
        try:
            while not self._stopping.is_set():
                with journal_errors(self._journal_path):
                    activity.run()
                activity.wake.wait(activity.pause_seconds())
                activity.wake.clear()
        except BaseException as error:  # noqa: BLE001 -- raised again in whoever drives the daemon
            if not self._stopping.is_set():
                self._failure = self._failure or error

    def stop(self) -> None:
        """Begin no further step. Those that change the file system are waited for, the others for a moment."""
        self._stopping.set()
        self.wake()
        for activity, thread in self._threads.items():
            thread.join(None if activity.acts else STOP_SECONDS)

    def look(self) -> None:
        """Report steps that last long, once each, with what they wait for. For a thread that is none of theirs."""
        for activity in self._all:
            state = activity.state
            lasted = self._clock.now() - state.begun_at
            if state.begun_at in {0.0, activity.reported_of} or lasted < REPORTED_AFTER_SECONDS:
                continue
            activity.reported_of = state.begun_at
            activity.waits_for = self._acts_since(state.begun_at) if activity.acts else ""
            activity.waits_for = activity.waits_for or FILESYSTEM_AWAY
            self._say(f"{state.doing} has taken {lasted:.0f} s so far: {activity.waits_for}")

    def _acts_since(self, begun_at: float) -> str:
        under_way: list[Entry] = []
        with suppress(OSError, sqlite3.Error):
            under_way = [act for act in self._reader.under_way() if act.intended_at >= begun_at]
        return "; ".join(map(describe_act, under_way))


def describe_act(act: Entry) -> str:
    """An act that is under way."""
    size = f", {act.size_bytes / 1e6:.0f} MB" if act.size_bytes else ""
    return f"{act.kind} of {quoted(act.place)}{size}"


HUNG_AFTER_SECONDS = 300.0
"""A look that lasts so much longer than any source may take counts as hung."""
STALE_CYCLES = 5
"""Without a look for so many cycle times, and half a minute, the daemon no longer counts as living."""


class Liveness:
    """Told by looking, which never waits for the file system. That others wait for it is no reason to be ended."""

    def __init__(self, looking_since: Callable[[], float], last_cycle_at: Callable[[], float], settings: Settings,
                 clock: Clock) -> None:
        self._looking_since = looking_since
        """Beginning of the look under way; 0 between two."""
        self._last_cycle_at = last_cycle_at
        """When a look ended last; 0 before the first."""
        self._settings = settings
        self._clock = clock
        self._begun = clock.now()

    def hung(self) -> bool:
        """Whether a look has taken longer than any may."""
        begun = self._looking_since()
        return bool(begun) and self._clock.now() - begun > self._settings.movers.timeout_seconds + HUNG_AFTER_SECONDS

    def alive(self) -> bool:
        """Whether looks still come. One may take long."""
        if self._looking_since():
            return not self.hung()
        last = self._last_cycle_at() or self._begun
        return self._clock.now() - last < STALE_CYCLES * self._settings.sense.cycle_seconds + 30
