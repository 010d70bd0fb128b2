"""Runs several activities over one cluster in virtual time: each is a thread, and exactly one runs at any moment.

A daemon has threads: one observes, one moves files, one judges. On a real file system they run in parallel, and a wait
of one does not delay another unless they share a lock. Here the same code runs in virtual time: an activity that makes
a call with a virtual duration returns the baton, the cluster advances, and the activity with the earliest time runs
next. The order depends only on virtual time, not on the scheduler of the machine, so the same seed gives the same run.

::

    cluster = Cluster(recorded_test_bed(), jobs)
    with VirtualScheduler(cluster) as scheduler:
        filesystem = SimulatedFilesystem(cluster)          # its calls suspend only the calling activity
        service = Service(..., VirtualClock(cluster))
        scheduler.every("observe", 5.0, service.observe)   # or spawn("observe", loop)
        scheduler.every("act", 0.2, service.act)
        scheduler.every("judge", 5.0, service.judge)
        scheduler.run_until(300.0)
        scheduler.finish()                                 # completes the steps before a test reads the result

From construction to :meth:`VirtualScheduler.close`, the scheduler owns the time of the cluster. ``cluster.advance`` and
``cluster.wait_for``, and therefore every file system, clock and mover over the cluster, suspend the calling activity.
If the owner of the run calls them, for example a test, they let the activities run. Other threads, for example of a
control socket, may also call them; such a call runs between two steps of the driver.

An activity must not wait for another activity with real synchronisation: a wait for a ``threading.Lock`` that another
activity holds while virtual time passes, for a ``ThreadPoolExecutor`` or for an ``Event`` does not return the baton.
Use :meth:`executor`, which has the same interface. Otherwise the run ends with :class:`StuckError`, which shows the
stack of the activity.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from simulator.cluster import Cluster
from simulator.engine import Completion

BATON_TIMEOUT_SECONDS = 120.0
"""Longest wall time of an activity between two virtual waits. After it the run is aborted."""
P = ParamSpec("P")
T = TypeVar("T")


class StuckError(RuntimeError):
    """An activity did not return the baton, because it waits for another activity outside virtual time."""


class ActivityCancelled(BaseException):
    """Raised in a waiting activity at the end of the run."""


class Baton:
    """A semaphore of at most one, taken at first. A handover costs less than with threading.Semaphore."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def release(self) -> None:
        """Let the waiting thread, or the next one that waits, continue."""
        if self._lock.locked():
            self._lock.release()

    def acquire(self, timeout: float = -1) -> bool:
        """Wait for :meth:`release`. Returns False after ``timeout`` seconds."""
        return self._lock.acquire(timeout=timeout)


@dataclass(eq=False)
class Activity:
    """An activity: a function on a thread of its own."""

    name: str
    call: Callable[[], object]
    finished: Completion = field(default_factory=Completion)
    """Completes when the activity ends. An exception of the activity ends the run instead."""
    baton: Baton = field(default_factory=Baton)
    thread: threading.Thread | None = None
    error: BaseException | None = None


def one_of(processors: Collection[int]) -> int:
    """A processor for the threads of one scheduler. Processes that were started one after the other get different ones.
    The threads run in turn. On two processors each turn waits for the other one to wake, which doubles the time.
    """
    return sorted(processors)[os.getpid() % len(processors)]


class VirtualScheduler:
    """Schedules the activities over a cluster. As a context manager, it ends them on exit, and uses one processor."""

    def __init__(self, cluster: Cluster, timeout_seconds: float = BATON_TIMEOUT_SECONDS) -> None:
        self._cluster = cluster
        self._timeout_seconds = timeout_seconds
        self._ready: deque[Activity | None] = deque()
        """Activities that can run now. None: only the owner of the run has something to look at."""
        self._activities: list[Activity] = []
        self._baton_returned = Baton()
        self._driving = threading.RLock()
        self._mine = threading.local()
        self._closing = False
        self._steps_under_way = 0
        self._finished: Completion | None = None
        """The end of :meth:`finish`, while it runs: steps that become due wait for it."""
        self._processors: set[int] = set()
        cluster.timekeeper = self

    def __enter__(self) -> Self:
        self._processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {one_of(self._processors)})  # of this thread, and of those that it starts
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
        os.sched_setaffinity(0, self._processors)

    # Activities

    def spawn(self, name: str, call: Callable[[], object]) -> Activity:
        """Start an activity after the one that runs now. It ends when ``call`` returns."""
        made = Activity(name, call)
        # those that ended would be kept for ever
        self._activities = [each for each in self._activities if not each.finished.done]
        self._activities.append(made)
        self._ready.append(made)
        return made

    def every(self, name: str, seconds: float, step: Callable[[], object], *, after_end: bool = False) -> Activity:
        """Start an activity that runs a step now and then periodically. If a step takes longer than the period, the
        next one starts at once. With ``after_end``, the period begins at the end of a step.
        """

        def going_on() -> None:
            while True:
                while self._finished is not None:
                    self.wait_for(self._finished)
                begun = self._cluster.now
                self._steps_under_way += 1
                try:
                    step()
                finally:
                    self._steps_under_way -= 1
                self.sleep(seconds if after_end else max(0.0, begun + seconds - self._cluster.now))

        return self.spawn(name, going_on)

    def close(self) -> None:
        """End all waiting activities and return the control of time to the cluster."""
        if self._closing:
            return
        self._closing = True
        for activity in self._activities:
            if activity.thread is not None and not activity.finished.done:
                activity.baton.release()  # it wakes, sees that the run is over, and ends
                activity.thread.join(self._timeout_seconds)
        self._cluster.timekeeper = None

    # Time

    def run_until(self, time: float) -> None:
        """Run the cluster and all activities until a virtual time. Raises the exceptions of activities."""
        self._drive(time, lambda: False)

    def finish(self) -> None:
        """Complete the running steps of :meth:`every`. Until then, no other steps start."""
        self._finished = finished = Completion()
        try:
            self._drive(float("inf"), lambda: not self._steps_under_way)
        finally:
            self._finished = None
            finished.succeed()

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass for the calling activity, or for all activities if the caller is not an activity."""
        if self._current() is None:
            self.run_until(self._cluster.now + seconds)
        else:
            passed = Completion()
            with self._cluster.lock:
                self._cluster.engine.after(seconds, passed.succeed)
            self.wait_for(passed)

    def wait_for(self, completion: Completion) -> None:
        activity = self._current()
        if activity is None:
            completion.then(lambda _: self._ready.append(None))  # the driver itself waits: None only ends its wait
            self._drive(float("inf"), lambda: completion.done)
        elif not completion.done:
            completion.then(lambda _: self._ready.append(activity))
            self._give_back(activity)

    def _drive(self, time: float, enough: Callable[[], bool]) -> None:
        if self._current() is not None:
            raise RuntimeError("an activity cannot run other activities: it must sleep or wait")
        with self._driving:
            while not enough():
                if self._ready:
                    if (activity := self._ready.popleft()) is not None:
                        self._hand_over(activity)
                elif self._cluster.now >= time:
                    return
                else:
                    self._cluster.live(time, self._ready)

    # The baton

    def _current(self) -> Activity | None:
        return getattr(self._mine, "activity", None)

    def _hand_over(self, activity: Activity) -> None:
        if activity.thread is None:
            activity.thread = threading.Thread(target=self._run, args=(activity,), name=activity.name, daemon=True)
            activity.thread.start()
        activity.baton.release()
        if not self._baton_returned.acquire(timeout=self._timeout_seconds):
            frame = sys._current_frames().get(activity.thread.ident or 0)
            stands = "".join(traceback.format_stack(frame)) if frame is not None else ""
            raise StuckError(f"{activity.name} waits for something that is not virtual:\n{stands}")
        if activity.error is not None:
            error, activity.error = activity.error, None
            raise error

    def _give_back(self, activity: Activity) -> None:
        self._baton_returned.release()  # the driver goes on; this thread waits for its turn
        activity.baton.acquire()
        if self._closing:
            raise ActivityCancelled

    def _run(self, activity: Activity) -> None:
        self._mine.activity = activity
        activity.baton.acquire()
        try:
            if not self._closing:  # it may have been closed before its first turn
                activity.call()
        except ActivityCancelled:
            pass
        except BaseException as error:  # noqa: BLE001 -- raised again by the thread that drives
            activity.error = error
        activity.finished.succeed()  # before the baton: those who wait for it must be ready when the driver looks
        self._baton_returned.release()

    def executor(self, workers: int) -> VirtualExecutor:
        """Make a virtual ``ThreadPoolExecutor(workers)``. Wait with ``result()``, ``map`` or ``shutdown``."""
        return VirtualExecutor(self, workers)


class VirtualFuture(Future[T]):
    """A future whose result is awaited in virtual time."""

    def __init__(self, scheduler: VirtualScheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._finished = Completion()
        self.add_done_callback(lambda _: self._finished.succeed())

    def result(self, timeout: float | None = None) -> T:
        self._scheduler.wait_for(self._finished)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._scheduler.wait_for(self._finished)
        return super().exception(timeout)


class VirtualExecutor(Executor):
    """An executor whose workers are activities. It runs calls in order of submission."""

    def __init__(self, scheduler: VirtualScheduler, workers: int) -> None:
        self._scheduler = scheduler
        self._workers = workers
        self._submitted: deque[tuple[VirtualFuture[Any], Callable[[], Any]]] = deque()
        self._at_work: list[Activity] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: VirtualFuture[T] = VirtualFuture(self._scheduler)
        self._submitted.append((future, lambda: fn(*args, **kwargs)))
        self._at_work = [worker for worker in self._at_work if not worker.finished.done]
        if len(self._at_work) < self._workers:
            self._at_work.append(self._scheduler.spawn("worker", self._work))
        return future

    def _work(self) -> None:
        while self._submitted:
            future, call = self._submitted.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                value = call()
            except Exception as error:  # noqa: BLE001 -- it belongs to who asks for the result
                future.set_exception(error)
            else:
                future.set_result(value)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            for future, _ in self._submitted:
                future.cancel()
        if wait:
            for worker in self._at_work:
                self._scheduler.wait_for(worker.finished)
