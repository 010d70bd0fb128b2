"""The activities of the daemon. Each runs at its own interval, in its own thread, and reports its state.

A wait in one activity does not delay the others. If the file system takes two seconds for each call, planning becomes
slow, but not the status or the moves. If a source takes ten seconds to answer, only the status is late. In a simulation
or a test there are no threads, and one step of each activity runs in turn.

The watchdog and HTTP health checks depend on the observation of the counters, which never waits for the file system.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tierd.act.journal.connection import journal_errors
from tierd.act.journal.entry import Entry
from tierd.act.journal.reader import JournalReader
from tierd.act.movers.parallel import name_thread_as_process
from tierd.clock import Clock
from tierd.config.settings import Settings
from tierd.text import bytes_text, quoted

log = logging.getLogger("tierd.daemon")
REPORTED_AFTER_SECONDS = 60.0
"""A step that lasts longer is reported once, with what it waits for."""
STOP_SECONDS = 5.0
"""When the daemon stops, it waits this long for an activity that changes nothing."""
FILESYSTEM_AWAY = ("the file system, or a server of it, does not answer (lfs check servers); tierd continues when it "
                   "answers")


class Activity:
    """A step that runs repeatedly, and the pause between two runs."""

    def __init__(self, name: str, doing: str, step: Callable[[], object], pause_seconds: Callable[[], float],
                 clock: Clock, *, acts: bool = False, driven: bool = False,
                 explain: Callable[[], str] = lambda: FILESYSTEM_AWAY) -> None:
        """``doing`` describes it: ``moving files``. ``pause_seconds`` returns the time from the end of a step to the
        next, unless :attr:`wake` is set before. ``explain`` returns what a long step waits for, from any thread.

        ``acts``: the activity changes the file system, so the daemon waits for the end of its step before it stops.
        ``driven``: the thread that drives the daemon runs the activity.
        """
        self.name, self.doing, self.acts, self.driven = name, doing, acts, driven
        self.explain, self.pause_seconds = explain, pause_seconds
        self._step, self._clock = step, clock
        self.begun_at = 0.0
        """Start of the current step; 0 between two steps."""
        self.last_seconds = 0.0
        """Duration of the last step that ended."""
        self.waits_for = ""
        """What a long step waits for; "" until :meth:`Activities.check` has found out."""
        self.reported_of = 0.0
        """Start of the step that was reported as long."""
        self.wake = threading.Event()
        """Set when there may be work; the next step then begins at once."""

    @property
    def under_way_seconds(self) -> float:
        """Time that the current step has taken so far; 0 between two steps."""
        begun = self.begun_at
        return max(0.0, self._clock.now() - begun) if begun else 0.0

    def run(self) -> None:
        begun = self.begun_at = self._clock.now()
        try:
            self._step()
        finally:
            self.begun_at, self.waits_for = 0.0, ""
            self.last_seconds = max(0.0, self._clock.now() - begun)


Spawn = Callable[[Activity], threading.Event]
"""Runs an activity repeatedly. Returns the event that wakes it."""
ACTS_NAMED = 3
"""Acts under way that a message names. A choice: a batch has 16 and more."""
HUNG_AFTER_SECONDS = 300.0
"""A cycle counts as hung if it takes longer than the time limit of a move by this."""
STALE_CYCLES = 5
"""The daemon counts as dead if no cycle has ended for this many cycle times plus half a minute."""


class Activities:
    """All activities, in the order of their steps. The daemon's thread runs one of them, other threads the rest."""

    def __init__(self, activities: list[Activity], settings: Settings, clock: Clock,
                 last_cycle_at: Callable[[], float]) -> None:
        """``last_cycle_at`` returns the end of the last cycle; 0 before the first."""
        self.all = activities
        self._settings, self._clock, self._last_cycle_at, self._begun = settings, clock, last_cycle_at, clock.now()
        self._journal_path = settings.act.journal
        self._reader = JournalReader(Path(self._journal_path))
        self._stopping = threading.Event()
        self._threads: dict[Activity, threading.Thread] = {}
        self.concurrent = False
        """Whether the activities run in parallel instead of in turn."""
        self._failure: BaseException | None = None

    def _driven_since(self) -> float:
        """Start of the current step in the thread that drives the daemon; 0 between two steps."""
        return max(each.begun_at for each in self.all if each.driven or not self.concurrent)

    def hung(self) -> bool:
        """Whether the current cycle takes too long. Cycles never wait for the file system, as other activities may."""
        begun = self._driven_since()
        return bool(begun) and self._clock.now() - begun > self._settings.movers.timeout_seconds + HUNG_AFTER_SECONDS

    def alive(self) -> bool:
        """Whether cycles still end. One cycle may take long."""
        if self._driven_since():
            return not self.hung()
        last = self._last_cycle_at() or self._begun
        return self._clock.now() - last < STALE_CYCLES * self._settings.sense.cycle_seconds + 30

    def start(self, spawn: Spawn | None = None) -> None:
        """Start a thread for each activity that is not driven, or pass it to ``spawn``."""
        self.concurrent = True
        for activity in self.all:
            if not activity.driven:
                activity.wake = (spawn or self._in_a_thread)(activity)

    def _in_a_thread(self, activity: Activity) -> threading.Event:
        thread = threading.Thread(target=self._go_on, args=(activity,), name=f"tierd-{activity.name}", daemon=True)
        self._threads[activity] = thread
        thread.start()
        return activity.wake

    def run(self) -> None:
        """Run a step of the driven activity, or of all activities if there are no threads.

        Raises the error of an activity that failed in its thread.
        """
        if self._failure is not None:
            raise self._failure
        for activity in self.all:
            if activity.driven or not self.concurrent:
                activity.run()
        self.wake()

    def wake(self, *names: str) -> None:
        """Begin the next step of these activities now, or of all if no name is given. For any thread."""
        for activity in self.all:
            if not names or activity.name in names:
                activity.wake.set()

    def _go_on(self, activity: Activity) -> None:
        name_thread_as_process()
        try:
            while not self._stopping.is_set():
                with journal_errors(self._journal_path):
                    activity.run()
                activity.wake.wait(activity.pause_seconds())
                activity.wake.clear()  # before the step: what is queued during it wakes the next one
        except BaseException as error:  # noqa: BLE001 -- raised again in the thread that drives the daemon
            if not self._stopping.is_set():
                self._failure = self._failure or error

    def stop(self) -> None:
        """Begin no further step. Wait for the ends of steps that change the file system, and briefly for the others."""
        self._stopping.set()
        self.wake()
        for activity, thread in self._threads.items():
            thread.join(None if activity.acts else STOP_SECONDS)

    def check(self) -> None:
        """Report each long step once, with what it waits for. Call this in a thread that runs no activity."""
        for activity in self.all:
            begun_at, lasted = activity.begun_at, activity.under_way_seconds
            if begun_at in {0.0, activity.reported_of} or lasted < REPORTED_AFTER_SECONDS:
                continue
            activity.reported_of = begun_at
            under_way: list[Entry] = []
            if activity.acts:
                with suppress(OSError, sqlite3.Error):
                    under_way = [act for act in self._reader.under_way() if act.intended_at >= begun_at]
            activity.waits_for = describe_acts(under_way) or activity.explain()
            log.warning("%s has taken %.0f s so far: %s", activity.doing, lasted, activity.waits_for)


def describe_acts(acts: Sequence[Entry]) -> str:
    """Describe unfinished acts: the first ones, and how many there are."""
    more = f"; and {len(acts) - ACTS_NAMED} more acts" if len(acts) > ACTS_NAMED else ""
    return "; ".join(f"{act.kind} of {quoted(act.place)}{f', {bytes_text(act.size_bytes)}' if act.size_bytes else ''}"
                     for act in acts[:ACTS_NAMED]) + more
