"""Runs several activities over one cluster in virtual time: each is a thread, and exactly one runs at any moment.

A daemon has threads: one observes, one moves files, one judges. On a real file system they run side by side, and a wait
of one does not hold up another unless they share a lock. Here the same code runs the same way without a clock: an
activity that calls something which takes virtual time returns the baton, the cluster lives on, and the activity whose
time comes first runs next. The order follows from virtual time alone, never from the scheduler of the machine, so the
same seed gives the same run.

::

    cluster = Cluster(recorded_test_bed(), jobs)
    with VirtualScheduler(cluster) as scheduler:
        filesystem = SimulatedFilesystem(cluster)          # its calls suspend the activity that makes them, no other
        service = Service(..., VirtualClock(cluster), lock=scheduler.lock)
        scheduler.every("observe", 5.0, service.observe)   # or spawn("observe", a loop of one's own)
        scheduler.every("act", 0.2, service.act)
        scheduler.every("judge", 5.0, service.judge)
        scheduler.run_until(300.0)
        scheduler.finish()                                 # no step is half done when a test reads the result

From construction to :meth:`VirtualScheduler.close` it owns the time of the cluster. ``cluster.advance`` and
``cluster.wait_for``, and with them every file system, clock and mover over the cluster, suspend the activity that calls
them. When the owner of the run calls them, a test for instance, they let the activities run. The same holds for a
thread that is neither, such as one of a control socket; its call is served between two steps of the driver.

An activity must not wait for another by means of the machine: waiting for a ``threading.Lock`` that another holds while
virtual time passes, for a ``ThreadPoolExecutor`` or for an ``Event`` does not return the baton. Use :meth:`lock`,
:meth:`event` and :meth:`executor`, which have their interfaces. Otherwise the run ends with :class:`StuckError`, which
shows the stack of the activity.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from simulator.cluster import Cluster
from simulator.engine import Completion

BATON_TIMEOUT_SECONDS = 120.0
"""Of the machine: so long an activity may compute, or wait for what is not virtual, before the run is given up."""
P = ParamSpec("P")
T = TypeVar("T")


class StuckError(RuntimeError):
    """An activity did not give the baton back: it waits for something that only another could do."""


class ActivityCancelled(BaseException):
    """Raised in an activity, out of what it waits for, when the run is over."""


class Activity:
    """One that was spawned."""

    def __init__(self, name: str, call: Callable[[], object]) -> None:
        self.name = name
        self.finished = Completion()
        """Done when it has ended; never failed: what it raises ends the run."""
        self.call = call
        self.baton = threading.Semaphore(0)
        self.thread: threading.Thread | None = None
        self.error: BaseException | None = None


class VirtualScheduler:
    """The activities over a cluster. Context manager: leaving it ends them."""

    def __init__(self, cluster: Cluster, timeout_seconds: float = BATON_TIMEOUT_SECONDS) -> None:
        self._cluster = cluster
        self._timeout_seconds = timeout_seconds
        self._ready: deque[Activity] = deque()
        self._activities: list[Activity] = []
        self._baton_returned = threading.Semaphore(0)
        self._driving = threading.RLock()
        self._mine = threading.local()
        self._closing = False
        self._steps_under_way = 0
        self._resting = False
        self._go_on = VirtualCondition(self, cluster)
        cluster.timekeeper = self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # Activities

    def spawn(self, name: str, call: Callable[[], object]) -> Activity:
        """An activity that begins now, after what runs now; it is over when the call returns."""
        made = Activity(name, call)
        self._activities = [each for each in self._activities if not each.finished.done]
        self._activities.append(made)
        self._ready.append(made)
        return made

    def every(self, name: str, seconds: float, step: Callable[[], object]) -> Activity:
        """An activity that does the same again and again: so long after it began last, or at once where it took longer.

        The first step comes after the first period.
        """

        def going_on() -> None:
            begun = self._cluster.now
            while True:
                self.sleep(max(0.0, begun + seconds - self._cluster.now))
                begun = self._run_step(step)

        return self.spawn(name, going_on)

    def repeat(self, name: str, step: Callable[[], object], pause_seconds: Callable[[], float]) -> VirtualEvent:
        """An activity that runs a step now, and again ``pause_seconds`` after each end or when the event is set.

        Returns the event, which the activity clears when it wakes.
        """
        wake = self.event()

        def going_on() -> None:
            while True:
                self._run_step(step)
                wake.wait(pause_seconds())
                wake.clear()

        self.spawn(name, going_on)
        return wake

    def _run_step(self, step: Callable[[], object]) -> float:
        """Run one step of :meth:`every` or :meth:`repeat`; returns when it began. While others finish, it waits."""
        while self._resting:
            self._go_on.wait(None)
        begun = self._cluster.now
        self._steps_under_way += 1
        try:
            step()
        finally:
            self._steps_under_way -= 1
        return begun

    def close(self) -> None:
        """End all activities where they wait, and give the cluster its time back."""
        if self._closing:
            return
        self._closing = True
        for activity in self._activities:
            if activity.thread is not None and not activity.finished.done:
                activity.baton.release()
                activity.thread.join(self._timeout_seconds)
        self._cluster.timekeeper = None

    # Time

    def run_until(self, time: float) -> None:
        """Let the cluster and all activities live until a virtual time. Raises what an activity raises."""
        self._drive(time, lambda: False)

    def finish(self) -> None:
        """Let the steps of :meth:`every` and :meth:`repeat` that are under way come to their end, and begin no others
        before they have.
        """
        self._resting = True
        try:
            self._drive(float("inf"), lambda: not self._steps_under_way)
        finally:
            self._resting = False
            self._go_on.notify_all()

    def sleep(self, seconds: float) -> None:
        """Let so much virtual time pass: for the activity that asks, else for all."""
        if self._current() is None:
            self.run_until(self._cluster.now + seconds)
        else:
            passed = Completion()
            with self._cluster.lock:
                self._cluster.engine.after(seconds, passed.succeed)
            self.wait_for(passed)

    def wait_for(self, completion: Completion) -> None:
        """Wait until something is done in virtual time."""
        activity = self._current()
        if activity is None:
            self._drive(float("inf"), lambda: completion.done)
        elif not completion.done:
            completion.then(lambda _: self._ready.append(activity))
            self._give_back(activity)

    def _drive(self, time: float, enough: Callable[[], bool]) -> None:
        if self._current() is not None:
            raise RuntimeError("an activity cannot drive the others: it sleeps, or waits for something")
        with self._driving:
            while not enough():
                if self._ready:
                    self._hand_over(self._ready.popleft())
                elif self._cluster.now >= time:
                    return
                else:
                    self._cluster.live(time, lambda: bool(self._ready) or enough())

    # The baton

    def _current(self) -> Activity | None:
        """The activity of this thread; None for those of others."""
        return getattr(self._mine, "activity", None)

    def _hand_over(self, activity: Activity) -> None:
        """Let one run until it waits for something virtual, or ends."""
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
        self._baton_returned.release()
        activity.baton.acquire()
        if self._closing:
            raise ActivityCancelled

    def _run(self, activity: Activity) -> None:
        self._mine.activity = activity
        activity.baton.acquire()
        try:
            if not self._closing:
                activity.call()
        except ActivityCancelled:
            pass
        except BaseException as error:  # noqa: BLE001 -- raised again in whoever drives
            activity.error = error
        activity.finished.succeed()
        self._baton_returned.release()

    # What activities share

    def lock(self) -> VirtualLock:
        """As ``threading.RLock()``."""
        return VirtualLock(self, self._cluster)

    def event(self) -> VirtualEvent:
        """As ``threading.Event()``."""
        return VirtualEvent(self, self._cluster)

    def executor(self, workers: int) -> VirtualExecutor:
        """As ``ThreadPoolExecutor(workers)``. Wait by ``result()``, ``map`` or ``shutdown``."""
        return VirtualExecutor(self, workers)


class VirtualCondition:
    """Completions of those who wait until something changes."""

    def __init__(self, scheduler: VirtualScheduler, cluster: Cluster) -> None:
        self._scheduler = scheduler
        self._cluster = cluster
        self._waiting: deque[Completion] = deque()

    def wait(self, timeout_seconds: float | None) -> None:
        """Until it rings, or so long in virtual time."""
        notified = Completion()
        self._waiting.append(notified)
        if timeout_seconds is not None:
            with self._cluster.lock:
                self._cluster.engine.after(timeout_seconds, _complete, notified)
        self._scheduler.wait_for(notified)

    def notify_all(self) -> None:
        """Wake all of them, in the order they came."""
        waiting, self._waiting = self._waiting, deque()
        for notified in waiting:
            _complete(notified)


def _complete(completion: Completion) -> None:
    if not completion.done:
        completion.succeed()


class VirtualLock:
    """A lock that one thread may take several times; whoever finds it taken waits in virtual time."""

    def __init__(self, scheduler: VirtualScheduler, cluster: Cluster) -> None:
        self._cluster = cluster
        self._released = VirtualCondition(scheduler, cluster)
        self._owner: int | None = None
        self._times = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; False when it was not to be had, or not for so many virtual seconds."""
        me, until = threading.get_ident(), self._cluster.now + timeout
        while self._owner not in {None, me}:
            if not blocking or (timeout >= 0 and self._cluster.now >= until):
                return False
            self._released.wait(max(0.0, until - self._cluster.now) if timeout >= 0 else None)
        self._owner = me
        self._times += 1
        return True

    def release(self) -> None:
        """Give it back. Raises RuntimeError where it is not one's own."""
        if self._owner != threading.get_ident():
            raise RuntimeError("it is not held by who releases it")
        self._times -= 1
        if not self._times:
            self._owner = None
            self._released.notify_all()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class VirtualEvent:
    """Something that happens, which is waited for in virtual time."""

    def __init__(self, scheduler: VirtualScheduler, cluster: Cluster) -> None:
        self._cluster = cluster
        self._happened = VirtualCondition(scheduler, cluster)
        self._set = False

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._set

    def set(self) -> None:
        """It happens."""
        self._set = True
        self._happened.notify_all()

    def clear(self) -> None:
        """It has not happened again."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it, or so many virtual seconds; whether it has happened."""
        until = None if timeout is None else self._cluster.now + timeout
        while not self._set and (until is None or self._cluster.now < until):
            self._happened.wait(None if until is None else until - self._cluster.now)
        return self._set


class VirtualFuture(Future[T]):
    """Waiting for the result lets virtual time pass."""

    def __init__(self, scheduler: VirtualScheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._finished = Completion()
        self.add_done_callback(lambda _: self._finished.succeed())

    def result(self, timeout: float | None = None) -> T:
        """What came of it."""
        self._scheduler.wait_for(self._finished)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What it raised."""
        self._scheduler.wait_for(self._finished)
        return super().exception(timeout)


class VirtualExecutor(Executor):
    """So many activities that take what is submitted, first come first served."""

    def __init__(self, scheduler: VirtualScheduler, workers: int) -> None:
        self._scheduler = scheduler
        self._workers = workers
        self._submitted: deque[tuple[VirtualFuture[Any], Callable[[], Any]]] = deque()
        self._at_work: list[Activity] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have something done."""
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
        """Take no more; wait for what was submitted."""
        if cancel_futures:
            for future, _ in self._submitted:
                future.cancel()
        if wait:
            for worker in self._at_work:
                self._scheduler.wait_for(worker.finished)
