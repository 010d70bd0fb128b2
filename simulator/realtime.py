"""Runs a cluster in real time: a thread advances its time with the wall clock and updates its parameter files.

Other threads may read and act meanwhile; the cluster's lock serialises them. They wait for calls that take virtual
time. No other module of the simulator uses the time of day.
"""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

from simulator.cluster import Cluster
from simulator.engine import Completion
from simulator.parameters import write_parameters

TICK_SECONDS = 0.05
STEP_SECONDS = 0.001


class RealTimeDriver:
    """Runs the thread that advances a cluster. As a context manager, from entry to exit."""

    def __init__(self, cluster: Cluster, root: Path | None, clock: WallClock) -> None:
        self.cluster = cluster
        self.error: BaseException | None = None
        """Error that ended the thread; None otherwise."""
        self._root = root
        self._clock = clock
        self._stopping = Event()
        self._last: float | None = None
        """Time of the last advance of virtual time."""
        self._thread = Thread(target=self._run, name="lustre-simulator", daemon=True)
        cluster.timekeeper = self

    def __enter__(self) -> Self:
        """Write the parameter files once, then start the thread."""
        if self._root is not None:
            write_parameters(self.cluster, self._root)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End the thread and wait for it. Pending waits raise TimeoutError."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass at once."""
        self.cluster.live(self.cluster.now + seconds)

    def wait_for(self, completion: Completion) -> None:
        """Block the calling thread until a completion. Raises TimeoutError when the driver has ended.

        The waiting thread also advances the time, in shorter steps, because most calls end long before the next tick.
        """
        while not completion.done and not self._clock.wait(STEP_SECONDS, self._stopping):
            self._catch_up()
        if not completion.done:
            raise TimeoutError("the simulated cluster was stopped")

    def _run(self) -> None:
        try:
            self._drive()
        except BaseException as error:  # noqa: BLE001 - kept for the owner, who would otherwise wait forever
            self.error = error
        finally:
            self._stopping.set()

    def _drive(self) -> None:
        self._catch_up()
        files_due = self._clock.monotonic() + 1.0
        while not self._clock.wait(TICK_SECONDS, self._stopping):
            now = self._clock.monotonic()
            self._catch_up()
            if self._root is not None and now >= files_due:
                write_parameters(self.cluster, self._root)
                files_due = max(files_due + 1.0, now)

    def _catch_up(self) -> None:
        with self.cluster.lock:
            now = self._clock.monotonic()
            last, self._last = self._last, now
            if last is not None:
                self.cluster.live(self.cluster.now + now - last)


class WallClock:
    """The monotonic clock of the machine, with a wait that an event ends early."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float, until: Event) -> bool:
        """Wait for a time or until the event is set; returns whether it is set."""
        return until.wait(seconds)
