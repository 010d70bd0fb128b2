"""What each stream loses to other jobs on its targets: one posterior for each stream, carried from window to window.

A stream has the next request ready when one is done, so it gets what others leave of the time of its targets. In
window w its rate y is

    log y_w = level_w - sum_j b_j D_jw - b_r R_w + e_w

``D_jw`` is what the stream would lose if the device time taken by job j were time lost: ``-log(1 - X)`` for all
suspects together, of which j has its part, where X is their part of the time of the stream's fullest targets. ``R_w``
is the same for other streams, ``log(1 + theirs / own)``. ``level`` is what the stream would get alone; it wanders.
``b`` says how far time taken is time lost: its prior mean and error come from what is known of the device and of the
costs of service (:mod:`tierd.detect.costs`). So the comparison with the time before a neighbour ran, with how its load
varies, and device time alone are data and prior of the same posterior.

This is a multi-process dynamic linear model, class II (Harrison and Stevens, "Bayesian Forecasting", 1976; West and
Harrison, "Bayesian Forecasting and Dynamic Models", 1997, chapter 12). Each window is of one of four kinds: as usual;
odd (the stream paused, or a reading was late); a jump of the level (a disk became slow); or a suspect that has just
come costs more than device time says. All kinds are carried on for one window, and then joined by their probabilities,
so that the window after decides which it was. The loss to some suspects is ``1 - exp(-sum b_j D_j)``.

All streams are updated at once. A stream has a row of the state; a suspect has a slot of that row, which it keeps while
it is away: when it comes back, it has what was learned before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, log, log1p, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tierd.detect.columns import JobKinds, RecentWork, WindowColumns, level_before
from tierd.detect.costs import SATURATED, SPREAD, CostTable, waited_for
from tierd.loads import Bools, Floats, Ints, distinct, found_in, sums
from tierd.model import EarlierWork
from tierd.text import Carrier

SUSPECTS = 6
"""Slots of a stream. More jobs than this rarely matter to one stream: tasks of an array count as one. A choice."""
RIVALS = SUSPECTS
"""Column of all other streams together."""
COLUMNS = SUSPECTS + 1
LEAST_EXPOSURE = 0.01
"""Part of the device time below which a job gets no slot, and of the stream's own below which other streams do not
count: it cannot cost a stream a noticeable part. A choice."""
LEAST_LOST = 1e-6
"""A loss, or a part of one, below a millionth counts as none."""
MOST_LOST = 30.0
"""A larger log of a loss cannot be told from losing everything in floating point."""
MOST_EXPOSURE = 0.95
"""More than this part of the time is never lost in the model: the logarithm stays finite."""
FULL = 0.9
"""Targets with this part of the utilisation of the stream's fullest hold it up: stripes go in step, and the stream
waits for the slowest. It is the allowance for readings within an RPC."""

WANDER = 0.01**2 / 5
"""Variance of the level, each second. Steady streams of the recordings in ``tests/tapes`` change by about 1% from one
window of 5 s to the next beyond their noise."""
MOST_WANDER, WANDER_LEARNING = 25.0, 4.0
"""Most that a level is taken to wander, as a multiple of ``WANDER`` (5% in 5 s), and how fast that is learned.
Choices: of 120 made streams that wander by 3%, 4 instead of 11 are said to lose to a job that costs nothing."""
LEVEL_UNKNOWN = 3.0
"""Error of the log of a level of which nothing is known: a factor of twenty either way. A choice; any large one."""
NOISE, NOISE_WINDOWS, NOISE_MEMORY = 0.04, 6, 30
"""Error of a window before it is known, how many windows this counts as, and how many are remembered. Streams of the
recordings vary by 2% to 8% in windows of 5 s."""
LEAST_NOISE = 0.01
"""Counters are read at slightly different times: no window is known better."""
ODD, ODD_PROBABILITY = 0.7, 0.03
"""Error of the log of an odd window: half or double; and how often windows are odd. Two of the 70 windows of each
control recording are."""
JUMP, JUMPS_A_SECOND = 0.5, 1 / 3600
"""Error of the log of the level when it jumps, and how often it does: a disk or the stream itself changes about once
in an hour. A choice: half or double of it moves the probability of a jump as much, and hardly any finding."""
LEVEL_SECONDS = 3600.0
"""The level of a stream that was away for longer is forgotten: its files are on other targets by then, or are others. A
choice, as long as a level lasts."""
SURPRISE, SURPRISE_PROBABILITY, SURPRISE_WINDOWS = 0.5, 0.05, 2
"""Error of the log that all jobs that have just come cost beyond device time, if one does; its probability at each
arrival; and the windows in which a job counts as new: the first may begin before it. RAID groups can lose far more than
device time to a few partial stripes, because a whole stripe waits for each."""
PARTIAL = 6.0
"""Largest error of b, in a surprise and in a prior: RAID 6 reads three chunks and writes three for a write of less than
one."""
DOSE_ERROR = 0.1
"""Relative error of the device time that jobs took in one window: costs are means."""
DRIFT = 0.1**2 / 120
"""Variance of b, each second: what a job costs varies by 10% in two minutes, as its files fill other places."""
LASTS = 0.2
"""Relative error of a loss over a whole stay. An operation costs a disk from half a turn (4 ms) to a seek more (12 ms),
by where files lie: 29%. Bytes vary by 10%. The mean of both is a choice."""
SMOOTHING = 0.3
"""Weight of the newest window in the device time of a job. A stall of a target slows all jobs on it at once, which does
not show that one slows another. A change by a factor of two is taken at once: the job started, left or changed."""
SLOW_SMOOTHING = 0.2
"""The same for the utilisation of targets. A choice: where a disk becomes slow, it must not follow before the level."""

MOST_AWAY = 1000
"""Streams that are remembered while they are away, those that were there last: 3 MB. A choice."""
AWAY_SECONDS = 30.0
"""A job that was away for longer has come again: no recent window has it, and it may do other work. A choice."""
ELEVATOR = 0.75
"""Part of an operation's time that a stream loses. An elevator saves up to half of the positioning, as it orders what
waits (Worthington, Ganger and Patt, "Scheduling Algorithms for Modern Disk Drives", 1994), so between half and all."""
MODEL_ERROR = 0.25
"""Error of b where all else is known: 0.14 for this range, and 0.2, a choice, for partial stripes and commits."""
RIVALS_ERROR = 0.5
"""Error of b of other streams: one gets between nothing and twice the part that its RPCs in flight would give it."""
RIVALS_PRIOR = 1.0, RIVALS_ERROR, 0.0, 0.0
"""See ``prior`` in :data:`STATE`."""
SHARING, LEAST_SHARE = 0.25, 0.1
"""How far one of several streams may lose more than its part of the time; and the part below which this is not counted
further."""
SMALL_IO_BYTES = 256 << 10
"""Bytes for each operation below which a job does small I/O: less than a stream moves in an RPC."""
LEARNED = 0.2
"""Relative error of the cost of an operation up to which it counts as learned; from twice of it, as not learned. A
choice."""
IO_BOUND = 0.25
"""Part of the device time for small I/O from which the I/O limit of a device that has one is full."""

QUANTILE_STEPS = 20
"""Halvings of the interval that holds a quantile: a millionth of it is left."""
AT_ONCE = 60
"""Streams that the filter updates at once: 8 KiB for each stay in the processor cache, and in used memory."""
NORMAL, STRANGE, JUMPED, SURPRISED = range(4)
KINDS = 4
"""Kinds of a window, see above."""
ERRORS_OF_90_PERCENT = 1.645
"""Standard errors on each side of the mean that hold nine tenths of a normal distribution."""
normal = NormalDist().cdf


@dataclass(frozen=True)
class Loss:
    """What one stream loses to some suspects now. ``victim``, ``suspects`` and ``targets`` are numbers of names."""

    victim: int
    suspects: tuple[int, ...]
    """The most costly first; they cost four fifths of what all suspects cost."""
    targets: tuple[int, ...]
    bytes_per_second: float
    """Rate of the stream in the newest window."""
    mean: float
    """Mean of the posterior of the lost log rate."""
    error: float
    """Its standard deviation."""
    carrier: Carrier
    came_at: float
    """When the first suspect started; epoch seconds. 0 if it was active before the stream was seen."""
    rate_before: float = 0.0
    """Rate of the stream before the first suspect started, if that was just now: bytes per second; otherwise 0."""
    limited: float = 0.0
    """Probability that the devices do small I/O at no cost."""
    small_io: float = 0.0
    """Part of the loss that is not there then."""
    most: float = MOST_LOST
    """Largest log of a loss that its own device time allows: alone, the stream would take all of the time."""

    @property
    def share(self) -> float:
        """Lost part of what the stream would get without these suspects."""
        return 1 - exp(-min(self.mean, self.most))

    @cached_property
    def usual_bytes_per_second(self) -> float:
        """What the stream would get without these suspects: what it got just before, if the posterior agrees."""
        beside = self.bytes_per_second
        if self.rate_before <= beside:
            return beside / (1 - self.share)
        least, most = (beside / (1 - share) for share in self.interval)
        return min(max(self.rate_before, least), most)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The shares between which the loss is with a probability of 90%."""
        return self.quantile(-ERRORS_OF_90_PERCENT), self.quantile(ERRORS_OF_90_PERCENT)

    def quantile(self, errors: float) -> float:
        """The share that is exceeded with the probability that a normal value is this many errors above its mean."""
        if self.mean < LEAST_LOST:
            return 0.0
        middle, spread, spared = self._mixture
        low, high, wanted = errors + spared, errors, normal(-errors)
        for _ in range(QUANTILE_STEPS if self.limited > 0 else 0):
            at = (low + high) / 2
            low, high = (at, high) if self._exceeds(at) > wanted else (low, at)
        return 1 - exp(-exp(min(middle + spread * high, log(self.most))))

    def probability(self, share: float) -> float:
        """Probability that the stream loses at least this share."""
        lost = -log1p(-share)
        if self.mean < LEAST_LOST or not 0 < lost < self.most:
            return float(lost <= 0)
        middle, spread, _ = self._mixture
        return self._exceeds((log(lost) - middle) / spread)

    def _exceeds(self, errors: float) -> float:
        """Probability that the log of the loss is more than this many errors above its middle."""
        return (1 - self.limited) * normal(-errors) + self.limited * normal(self._mixture[2] - errors)

    @cached_property
    def _mixture(self) -> tuple[float, float, float]:
        """Middle and standard error of the log of the loss, and by how many errors it is less where the devices do
        small I/O at no cost.

        A loss is not negative, and its errors are mostly factors (what an operation costs), so it is taken as
        log-normal. Mean and error of the mixture of both cases are kept.
        """
        rest = max(1 - self.small_io, LEAST_LOST)
        whole = self.mean / (1 - self.limited * (1 - rest))
        squares = 1 - self.limited * (1 - rest**2)
        ratio = max((self.mean**2 + self.error**2) / (whole**2 * squares), 1 + LEAST_NOISE**2)
        spread = sqrt(log(ratio))
        return log(whole) - spread**2 / 2, spread, log(rest) / spread


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """The streams of a window, their rows of the state, and the targets that hold each up."""

    job: Ints
    row: Ints
    of: Ints
    """Index of the stream, for each pair of a stream and a target that holds it up."""
    target: Ints
    count: Ints
    """Number of such targets of each stream."""
    share: Floats
    """Part of the device time that each takes of them among all streams there."""
    saturation: Floats
    """How sure it is that the stream waits for them: 0 to 1."""
    io_bound: Floats
    """How far an I/O limit of the devices would be full: 0 to 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Newest:
    """What a window said, by stream."""

    seconds: float
    """Length of the window."""
    streams: Streams
    exposure: Floats
    """D of each slot, and R."""
    rate: Floats
    """Bytes per second; 0 where the window says nothing."""
    most: Floats
    """See :class:`Loss`."""
    mean: Floats
    """Of the posterior: level, b of each slot, b of other streams."""
    covariance: Floats
    state: NDArray[np.void]
    """What is carried on, see :data:`STATE`."""


STATE = np.dtype([
    # level, b of each slot, b of other streams; for each kind that the newest window may have been
    ("mean", float, (KINDS, 1 + COLUMNS)),
    ("covariance", float, (KINDS, 1 + COLUMNS, 1 + COLUMNS)),
    ("weight", float, KINDS),
    # part of the information of the prior of each b that the posterior still has: as b may have changed, less
    ("left", float, (KINDS, COLUMNS)),
    # number of the job of each slot, -1 for a free one; mean and error of the prior of its b, the part of its device
    # time that costs the stream nothing if the device does small I/O at no cost, and the part of the variance of that
    ("slot", np.int64, SUSPECTS),
    ("prior", float, (COLUMNS, 4)),
    # smoothed part of the device time, of others as a multiple of the stream's own; when the job started and was last
    # seen
    ("exposure", float, COLUMNS),
    # factor by which D has risen, for the same work, as costs were learned or other targets the fullest: b fell as much
    ("dose_factor", float, COLUMNS),
    ("came_at", float, COLUMNS),
    ("seen_at", float, SUSPECTS),
    # windows since the job started, windows of the stream before that, and the mean log rate then
    ("age", float, COLUMNS),
    ("came_after", float, COLUMNS),
    ("before", float, COLUMNS),
    # of the stream: variance of a window, variance of the level each second, by how many standard deviations the newest
    # window was off, number of windows, end of the newest, recent mean log rate, utilisation of its targets
    ("noise", float),
    ("wander", float),
    ("off", float),
    ("windows", float),
    ("streamed_at", float),
    ("lately", float),
    ("utilisation", float),
])
"""What is carried on for one stream."""


class Interference:
    """The posteriors of all streams."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        """Row of each stream, by the number of its job."""
        self._remembered: dict[int, tuple[float, float]] = {}
        self.earlier: Mapping[int, EarlierWork] = {}
        """What jobs did before the first window: kept for the first windows, in which levels begin."""
        self._state = np.zeros(64, STATE)
        self._seconds = np.empty((0, 3))
        """Costs of the targets in the window before."""
        self._held: tuple[Ints, Ints] = (np.empty(0, np.int64), np.empty(0, np.int64))
        """Of the window before: streams, and the targets that held each up."""
        self._now = 0.0
        self._in_doubt: dict[int, frozenset[int]] = {}
        """Jobs that use a target whose speed means nothing, by target; of one that is not seen, those that did."""
        self.in_doubt: frozenset[int] = frozenset()
        """Streams with a target whose speed means nothing: the newest window says nothing about them."""
        self.newest: Newest | None = None
        """None if no stream was seen."""

    @property
    def jobs(self) -> set[int]:
        """Jobs of which something is remembered: streams, and suspects on their targets."""
        suspects = self._state["slot"][:len(self._rows)]
        return {*self._rows, *self._remembered, *self.earlier, *self.in_doubt, *suspects[suspects >= 0].tolist()}

    def remember(self, rates: Mapping[int, tuple[float, float]]) -> None:
        """Take the usual rate of streams from elsewhere: the logarithm of bytes per second, and its error, by job."""
        self._remembered.update(rates)

    def update(self, window: WindowColumns, recent: RecentWork, kinds: JobKinds,
               costs: CostTable) -> tuple[list[Loss], list[Loss]]:
        """Add a window. Returns what the streams in it lose now to suspects, and to other streams that started while
        they were seen. ``recent`` is the mean work of the last half minute. Targets without known costs are left out.
        """
        self.newest = None
        streams = self._streams(recent, kinds, costs)
        self._doubt(window, recent, costs)
        if streams is None:
            return [], []
        if window.end < self._now:  # the clock went back
            for times in (self._state["seen_at"], self._state["streamed_at"]):
                np.minimum(times, window.start, out=times)
        self._now = window.end
        self._begin_again(streams)
        work = kinds.work(window)
        taken = costs.taken(window.target, work)
        own = own_rows(streams, window, len(kinds.stream))
        exposure = self._exposures(streams, window, kinds, costs, work, taken=taken, own=own)
        of, streaming = found_in(streams.job, window.job)
        streaming &= costs.known[window.target]
        rate = sums(of[streaming], work[streaming, :2], len(streams.job)).sum(axis=1)
        rate[np.isin(streams.job, list(self.in_doubt))] = 0.0  # left out below: the window says nothing of them
        there = rate > 0
        self._begin_levels(streams, np.log(np.maximum(rate, 1.0)), exposure, there)
        seen = np.flatnonzero(there)
        for begin in range(0, len(seen), AT_ONCE):
            some = seen[begin:begin + AT_ONCE]
            self._filter(streams.row[some], np.log(rate[some]), exposure[some], window.seconds)
        now = self.newest = Newest(window.seconds, streams, exposure, rate, most_lost(streams, *own, work, costs),
                                   *self._posterior(streams.row), state=self._state[streams.row])
        return self._losses(now), self._to_rivals(now, recent, kinds, costs)

    def _doubt(self, window: WindowColumns, recent: RecentWork, costs: CostTable) -> None:
        """Note which jobs use targets whose speed means nothing. On a target that is not seen, they may still do so."""
        unseen = set(window.unseen.tolist())
        self._in_doubt = {
            target: frozenset(recent.job[recent.target == target].tolist()).union(
                self._in_doubt.get(target, ()) if target in unseen else ())
            for target in costs.unhealthy.tolist()}
        self.in_doubt = frozenset[int]().union(*self._in_doubt.values())

    def _streams(self, recent: RecentWork, kinds: JobKinds, costs: CostTable) -> Streams | None:
        taken = costs.taken(recent.target, recent.work)
        utilisation = np.bincount(recent.target, taken, len(costs.known))
        rows = np.flatnonzero(
            kinds.stream[recent.job] & costs.known[recent.target] & (recent.work[:, :2].sum(axis=1) > 0))
        if not len(rows):
            return None
        rows = rows[waited_for(recent.job[rows], costs.request_msec[recent.target[rows]])]
        fullest = np.zeros(len(kinds.stream))
        np.maximum.at(fullest, recent.job[rows], utilisation[recent.target[rows]])
        pair = rows[utilisation[recent.target[rows]] >= FULL * fullest[recent.job[rows]]]
        pair = pair[np.argsort(recent.job[pair], kind="stable")]
        target = recent.target[pair]
        job, of = distinct(recent.job[pair])
        by_streams = np.bincount(recent.target[rows], taken[rows], len(costs.known))
        small = recent.work[:, :2].sum(axis=1) < SMALL_IO_BYTES * recent.work[:, 2]
        small_seconds = np.bincount(recent.target[small],
                                    recent.work[small, 2] * costs.seconds[recent.target[small], 2], len(costs.known))
        together = np.bincount(of, utilisation[target])
        new = [number for number in job.tolist() if number not in self._rows]
        if len(self._rows) + len(new) > len(self._state):
            self._forget_streams(job)
        for number in new:
            self._begin(number)
        return Streams(
            job, np.array([self._rows[number] for number in job.tolist()]), of, target, np.bincount(of),
            share=np.bincount(of, taken[pair]) / np.maximum(np.bincount(of, by_streams[target]), 1e-9),
            saturation=np.clip((fullest[job] - SATURATED) / (FULL - SATURATED), 0, 1),
            io_bound=np.clip((np.bincount(of, small_seconds[target]) / np.maximum(together, 1e-9) - SPREAD)
                    / (IO_BOUND - SPREAD), 0, 1))

    def _forget_streams(self, present: Ints) -> None:
        """Make room in the state: of the streams that are away, only some are kept."""
        jobs, last = np.array([*self._rows]), self._state["streamed_at"][:len(self._rows)].copy()
        last[np.isin(jobs, present)] = np.inf  # those that are here all stay
        kept = np.sort(np.argsort(-last, kind="stable")[:MOST_AWAY + int(np.isinf(last).sum())])
        self._rows = {job: row for row, job in enumerate(jobs[kept].tolist())}
        self._state[:len(kept)] = self._state[kept]
        self._state[len(kept):] = 0  # a new stream begins with zeros

    def _begin(self, job: int) -> None:
        row = self._rows[job] = len(self._rows)
        if row >= len(self._state):
            before, self._state = self._state, np.zeros(2 * row, STATE)  # rows that are not used take no memory
            self._state[:row] = before
        new = self._state[row]
        new["weight"][NORMAL] = 1.0
        new["mean"][:, 0] = np.nan  # until the first window
        new["prior"][RIVALS] = RIVALS_PRIOR
        new["mean"][:, 1 + RIVALS], new["covariance"][:, 1 + RIVALS, 1 + RIVALS] = 1.0, RIVALS_ERROR**2
        new["slot"], new["noise"], new["wander"], new["dose_factor"], new["left"] = -1, NOISE**2, WANDER, 1.0, 1.0

    def _begin_again(self, streams: Streams) -> None:
        """Forget the level of streams that were away for long, and who started while they were there."""
        state = self._state
        away = (state["windows"][streams.row] > 0) & (state["streamed_at"][streams.row] < self._now - LEVEL_SECONDS)
        row = streams.row[away]
        state["mean"][row, :, 0] = np.nan
        for name in ("windows", "came_after", "came_at", "exposure", "utilisation"):
            state[name][row] = 0
        for job in streams.job[away].tolist():
            self._remembered.pop(job, None)

    def _exposures(self, streams: Streams, window: WindowColumns, kinds: JobKinds, costs: CostTable, work: Floats,
                   taken: Floats, own: tuple[Ints, Ints]) -> Floats:
        """D of each suspect and R, by stream. ``own``: see :func:`own_rows`."""
        there, streaming = (np.flatnonzero(kind[window.job] & costs.known[window.target])
                            for kind in (kinds.suspect, kinds.stream))
        at, of = rows_on(streams.target, streams.of, window.target, there)
        pairs, pair = distinct(of * len(kinds.stream) + window.job[at])
        stream, job = pairs // len(kinds.stream), pairs % len(kinds.stream)
        busy = np.bincount(pair, taken[at], len(pairs)) / streams.count[stream]
        slot = self._slots(streams.row[stream], job, busy, window.seconds)
        has = slot >= 0
        mean_work = sums(pair, work[at], len(pairs)) / streams.count[stream, None]
        prior = self._priors(streams, stream[has], busy[has], mean_work[has], costs)
        self._begin_costs(streams.row[stream[has]], slot[has], prior)
        found = np.column_stack((self._by_slot(streams, window, there, taken, of=streams.of, target=streams.target),
                                 others_part(streams, window, streaming, own, taken=taken)))
        # the same by the costs, and on the targets, of the window before; a new target has no earlier costs
        seconds = np.concatenate((self._seconds, costs.seconds[len(self._seconds):]))
        by_former = replace(costs, seconds=seconds).taken(window.target, work)
        of, here = found_in(streams.job, self._held[0])
        held = self._held[1][here]
        former = np.column_stack((self._by_slot(streams, window, there, by_former, of=of[here], target=held),
                                  others_part(streams, window, streaming, own, taken=by_former)))
        self._seconds, self._held = costs.seconds, (streams.job[streams.of], streams.target)
        self._rescale(streams.row, np.divide(found, former, out=np.ones(found.shape),
                                             where=(found > 0) & (former > LEAST_LOST * found)))
        priors = self._state["prior"][streams.row]
        priors[:, RIVALS] = RIVALS_PRIOR
        priors[stream[has], slot[has]] = prior
        self._renew_priors(streams.row, priors)
        everything = np.bincount(window.target, taken, len(costs.known))
        use = np.bincount(streams.of, everything[streams.target]) / streams.count
        return self._smoothed(streams.row, found, use, window.seconds)

    def _by_slot(self, streams: Streams, window: WindowColumns, there: Ints, taken: Floats, of: Ints,
                 target: Ints) -> Floats:
        """Part of the time of these targets that the job in each slot takes, by stream. ``there``: rows of suspects."""
        count = len(streams.row)
        targets = np.bincount(of, minlength=count)
        at, of = rows_on(target, of, window.target, there)
        row, slot = np.nonzero(self._state["slot"][streams.row[of]] == window.job[at, None])
        found = np.bincount(of[row] * SUSPECTS + slot, taken[at[row]], count * SUSPECTS)
        return found.reshape(count, SUSPECTS) / np.maximum(targets, 1)[:, None]

    def _priors(self, streams: Streams, stream: Ints, busy: Floats, work: Floats, costs: CostTable) -> Floats:
        """Mean and error of b and the part of small I/O, for each pair of a stream and a suspect on its targets."""
        first = np.searchsorted(streams.of, stream)
        target = streams.target[first]
        relative = costs.errors(target, work) / np.maximum(busy, 1e-9)
        # a device with an I/O limit that is not full loses nothing to small I/O
        learned = np.clip(2 - costs.operation_errors(target) / LEARNED, 0, 1)
        by_limit = work[:, 2] * costs.seconds[target, 2] / np.maximum(busy, 1e-9) * (
            1 - learned * streams.io_bound[stream])
        saturation = streams.saturation[stream]
        limited = costs.limited[target]
        sharing = SHARING * (1 / np.maximum(streams.share[stream], LEAST_SHARE) - 1)
        error = np.minimum(np.sqrt(relative**2 + MODEL_ERROR**2 + sharing**2 + limited * (1 - limited) * by_limit**2
                                   + ((1 - saturation) / 2)**2), PARTIAL)
        return np.column_stack((ELEVATOR * saturation * (1 - limited * by_limit), error, by_limit,
                                limited * (1 - limited) * (by_limit / error)**2))

    def _slots(self, row: Ints, job: Ints, busy: Floats, seconds: float) -> Ints:
        """Slot of each pair; -1 for a job without one. New jobs with a large part get a slot that is free, or whose job
        has been away for longest, or does less than half of theirs.
        """
        state = self._state
        same = state["slot"][row] == job[:, None]
        slot = np.where(same.any(axis=1), same.argmax(axis=1), -1)
        at, known = row[slot >= 0], slot[slot >= 0]
        back = state["seen_at"][at, known] < self._now - AWAY_SECONDS
        self._arrive(at[back], known[back], seconds)
        state["seen_at"][at, known] = self._now
        taken = np.zeros((len(state), SUSPECTS), bool)  # slots that a job got in this window
        new = np.flatnonzero((slot < 0) & (busy >= LEAST_EXPOSURE))
        # the busiest first: it must not lose its slot to a lesser one
        for pair in sorted(new.tolist(), key=lambda p: -busy[p]):
            at = row[pair]
            free = int(np.argmin(np.where(state["slot"][at] < 0, -1.0, state["seen_at"][at])))
            if state["slot"][at, free] >= 0 and state["seen_at"][at, free] > self._now - 2 * seconds:  # no slot is free
                part = np.where(taken[at], np.inf, state["exposure"][at, :SUSPECTS])
                free = int(np.argmin(part))
                if part[free] > busy[pair] / 2:
                    continue
                # what it costs is now part of the level
                dose = doses(state["exposure"][[at]], state["utilisation"][[at]])[0, free]
                for moments in (state["mean"][at], state["covariance"][at], state["covariance"][at].swapaxes(1, 2)):
                    moments[:, 0] -= dose * moments[:, 1 + free]
                slot[(row == at) & (slot == free)] = -1
            taken[at, free] = True
            slot[pair] = free
            state["slot"][at, free], state["seen_at"][at, free] = job[pair], self._now
            state["exposure"][at, free], state["dose_factor"][at, free], state["prior"][at, free] = 0, 1, 0
        came = new[slot[new] >= 0]
        self._arrive(row[came], slot[came], seconds)
        return slot

    def _arrive(self, row: Ints, slot: Ints | int, seconds: float) -> None:
        state, windows = self._state, self._state["windows"][row]
        state["came_at"][row, slot] = np.where(windows > 0, self._now - seconds, 0.0)
        state["age"][row, slot], state["came_after"][row, slot] = 0, windows
        state["before"][row, slot] = state["lately"][row]

    def _begin_costs(self, row: Ints, slot: Ints, prior: Floats) -> None:
        """Begin b of jobs with a new slot: by the prior, or by the stream that knows the job best, if that is surer.

        b depends on the devices and on what the job does there. Streams differ by the error of the model.
        """
        state = self._state
        new = state["prior"][row, slot, 1] == 0
        row, slot, prior = row[new], slot[new], prior[new]
        mean, covariance = self._posterior(np.arange(len(self._rows) if len(row) else 0))
        knows, of = np.nonzero(state["exposure"][:len(mean), :SUSPECTS] > 0)
        errors = np.sqrt(covariance[knows, 1 + of, 1 + of] + MODEL_ERROR**2)
        b, error = prior[:, :2].T.copy()
        for number, job in enumerate(state["slot"][row, slot].tolist()):
            same = np.flatnonzero(state["slot"][knows, of] == job)
            if len(same) and errors[same].min() < error[number]:
                surest = same[errors[same].argmin()]
                b[number], error[number] = mean[knows[surest], 1 + of[surest]], errors[surest]
        state["prior"][row, slot], state["left"][row, :, slot] = prior, 1.0
        state["mean"][row, :, 1 + slot] = b[:, None]
        state["covariance"][row, :, 1 + slot, :] = state["covariance"][row, :, :, 1 + slot] = 0
        state["covariance"][row, :, 1 + slot, 1 + slot] = error[:, None]**2

    def _rescale(self, rows: Ints, ratio: Floats) -> None:
        """Adjust b: with newly learned costs or other fullest targets, the same work makes D this many times as large.
        What b D was before, it is now: windows showed the product. So b falls as D rises.
        """
        state = self._state
        before = doses(state["exposure"][rows], state["utilisation"][rows])
        state["exposure"][rows] *= ratio
        now = doses(state["exposure"][rows], state["utilisation"][rows])
        known = np.minimum(before, now) > LEAST_LOST
        factor = np.ones(before.shape)
        factor[known] = now[known] / before[known]
        state["mean"][rows, :, 1:] /= factor[:, None]
        state["covariance"][rows, :, 1:] /= factor[:, None, :, None]
        state["covariance"][rows, :, :, 1:] /= factor[:, None, None, :]
        state["prior"][rows, :, :2] /= factor[..., None]
        state["dose_factor"][rows] *= factor

    def _renew_priors(self, row: Ints, prior: Floats) -> None:
        """Take the former prior of b out of the posterior and the present one in, where they differ. Both are
        observations of b. What is known of costs, and of whether the stream waits, changes as windows come.
        """
        state = self._state
        for number in range(COLUMNS):
            new, old = prior[:, number], state["prior"][row, number]
            changed = (np.abs(new[:, 1] - old[:, 1]) > 0.1 * old[:, 1]) | (np.abs(new[:, 0] - old[:, 0]) > 0.1)
            at, column, new, old = row[changed], 1 + number, new[changed], old[changed]
            covariance, mean = state["covariance"][at], state["mean"][at]
            along = covariance[:, :, :, column]
            variance = along[..., column].copy()
            left = np.minimum(state["left"][at, :, number], old[:, 1, None]**2 / variance)  # it has no more than it has
            more = left * (1 / new[:, 1]**2 - 1 / old[:, 1]**2)[:, None]
            pull = left * (new[:, 0] / new[:, 1]**2 - old[:, 0] / old[:, 1]**2)[:, None]
            gain = along / (1 + more * variance)[..., None]
            mean += gain * (pull - more * mean[:, :, column])[..., None]
            covariance -= gain[..., :, None] * along[..., None, :] * more[..., None, None]
            mean[..., 1:] = np.maximum(mean[..., 1:], 0)
            state["mean"][at], state["covariance"][at], state["prior"][at, number] = mean, covariance, new

    def _smoothed(self, row: Ints, found: Floats, use: Floats, seconds: float) -> Floats:
        state = self._state
        old = state["exposure"][row]
        alike = (found <= 2 * old) & (old <= 2 * found) & (old > 0)
        new = state["exposure"][row] = np.where(alike, old + SMOOTHING * (found - old), found)
        before = state["utilisation"][row]
        came = (old[:, RIVALS] == 0) & (new[:, RIVALS] > 0)
        self._arrive(row[came], RIVALS, seconds)
        alone = found[:, :SUSPECTS].sum(axis=1) < LEAST_EXPOSURE
        busy = state["utilisation"][row] = np.where(before > 0, before + SLOW_SMOOTHING * alone * (use - before), use)
        # a stream keeps its targets busy: where they do less than the costs say, they are slower than their pool, or
        # the suspects cost more than that, which is for b to say
        exposure = doses(new, busy)
        state["age"][row] += exposure > 0.3 * LEAST_EXPOSURE
        return exposure

    def _begin_levels(self, streams: Streams, rate: Floats, exposure: Floats, there: Bools) -> None:
        """Begin the level of new streams: by what is remembered, or by the first window as device time explains it."""
        state = self._state
        for at in np.flatnonzero(there & np.isnan(state["mean"][streams.row, 0, 0])).tolist():
            row, job = streams.row[at], int(streams.job[at])
            if job not in self._remembered and (before := self._level_before(streams, at, rate[at], exposure[at])):
                self._remembered[job] = before
            level, error = self._remembered.get(job, (
                rate[at] + float(exposure[at] @ state["mean"][row, 0, 1:]), LEVEL_UNKNOWN))
            state["mean"][row, :, 0], state["covariance"][row, :, 0, 0] = level, error**2
            state["covariance"][row, :, 0, 1:] = state["covariance"][row, :, 1:, 0] = 0

    def _level_before(self, streams: Streams, at: int, rate: float, exposure: Floats) -> tuple[float, float] | None:
        job, state = int(streams.job[at]), self._state[streams.row[at]]
        if job not in self.earlier:
            return None
        beside = streams.job[streams.of[np.isin(streams.target, streams.target[streams.of == at])]]
        rivals = [each for each in map(self.earlier.get, beside[beside != job].tolist()) if each]
        others = [*map(self.earlier.get, state["slot"].tolist()), max(rivals, key=lambda each: each.at, default=None)]
        return level_before(self.earlier[job], others, rate, exposure, mean=state["mean"][NORMAL, 1:],
                            variance=np.diagonal(state["covariance"][NORMAL])[1:],
                            drift=WANDER + JUMPS_A_SECOND * JUMP**2)

    def _filter(self, row: Ints, rate: Floats, exposure: Floats, seconds: float) -> None:
        """One step of the filter, for all streams that moved bytes. ``rate`` is the logarithm."""
        state = self._state
        mean, covariance, weight = state["mean"][row], state["covariance"][row], state["weight"][row]
        b = np.arange(1, 1 + COLUMNS)
        passed = np.where(state["windows"][row] > 0, self._now - state["streamed_at"][row], seconds)
        covariance[:, :, 0, 0] += (state["wander"][row] * passed)[:, None]
        variance = covariance[:, :, b, b]
        covariance[:, :, b, b] += DRIFT * seconds * (exposure > 0)[:, None, :]
        left = np.repeat(state["left"][row][:, :, None], KINDS, axis=2)
        expected = np.maximum((weight[..., None] * mean).sum(axis=1)[:, 1:], 0)
        noise = state["noise"][row] + DOSE_ERROR**2 * ((exposure * expected)**2).sum(axis=1)
        prior, surprise = self._kinds_before(row, exposure, passed)
        # each kind that the window before may have been, with each kind of this one
        mean = np.repeat(mean[:, :, None, :], KINDS, axis=2)
        covariance = np.repeat(covariance[:, :, None], KINDS, axis=2)
        covariance[:, :, JUMPED, 0, 0] += JUMP**2
        covariance[:, :, SURPRISED, b, b] += surprise[:, None, :]
        left *= variance[:, :, None] / np.maximum(covariance[..., b, b], 1e-12)
        observed = np.concatenate((np.ones((len(row), 1)), -exposure), axis=1)
        error = rate[:, None, None] - np.einsum("vpki,vi->vpk", mean, observed)
        along = np.einsum("vpkij,vj->vpki", covariance, observed)
        spread = np.einsum("vpki,vi->vpk", along, observed) + np.where(
            np.arange(KINDS) == STRANGE, (noise + ODD**2)[:, None], noise[:, None])[:, None, :]
        likelihood = prior[:, None, :] + np.log(np.maximum(weight, 1e-12))[:, :, None] - 0.5 * (
            np.log(spread) + error**2 / spread)
        chance = np.exp(likelihood - likelihood.max(axis=(1, 2), keepdims=True))
        chance /= chance.sum(axis=(1, 2), keepdims=True)
        gain = along / spread[..., None]
        mean = mean + gain * error[..., None]
        covariance -= gain[..., :, None] * along[..., None, :]
        mean[..., 1:] = np.maximum(mean[..., 1:], 0)  # nobody gains from a neighbour
        off = weight * error[:, :, NORMAL] / np.sqrt(spread[:, :, NORMAL])
        self._learn_wander(row, off.sum(axis=1) * (exposure.sum(axis=1) < LEAST_EXPOSURE))
        ratio = (weight * error[:, :, NORMAL]**2 / spread[:, :, NORMAL]).sum(axis=1)
        self._learn_noise(row, rate, chance[:, NORMAL, NORMAL], ratio)
        state["mean"][row], state["covariance"][row], state["left"][row] = joined(chance, mean, covariance, left)
        state["weight"][row] = chance.sum(axis=1)
        state["streamed_at"][row] = self._now

    def _kinds_before(self, row: Ints, exposure: Floats, passed: Floats) -> tuple[Floats, Floats]:
        """Log of the probability of each kind of window before it is seen, and the variance of b for a surprise.
        ``passed``: seconds since each stream was seen before.
        """
        state = self._state
        age = state["age"][row]
        # of a job that was there before the stream was seen, no window shows what its arrival cost
        new = (age > 0) & (age <= SURPRISE_WINDOWS) & (exposure > 0) & (state["came_after"][row] > 0)
        come = (exposure * new).sum(axis=1)
        surprise = np.where(come > 0, SURPRISE_PROBABILITY, 0.0)
        jump = (1 - ODD_PROBABILITY - surprise) * -np.expm1(-JUMPS_A_SECOND * passed)
        chance = np.column_stack((1 - ODD_PROBABILITY - jump - surprise, np.full(len(row), ODD_PROBABILITY), jump,
                                  surprise))
        error = np.minimum(SURPRISE / np.maximum(come, 1e-3), PARTIAL)
        return np.log(np.maximum(chance, 1e-12)), new * error[:, None]**2

    def _learn_wander(self, row: Ints, off: Floats) -> None:
        """Learn how far the level of a stream wanders, from windows without suspects.

        Windows that follow each other are off to the same side if the level wanders more than is assumed: the gain of
        the filter is then too small (its innovations are white if it is right). Far off counts as three deviations.
        """
        state = self._state
        before, off = state["off"][row], np.clip(off, -3, 3)
        windows = np.minimum(NOISE_WINDOWS + state["windows"][row], NOISE_MEMORY)
        wander = state["wander"][row] * np.exp(WANDER_LEARNING * off * before / windows)
        state["wander"][row], state["off"][row] = np.clip(wander, WANDER, MOST_WANDER * WANDER), off

    def _learn_noise(self, row: Ints, rate: Floats, chance: Floats, ratio: Floats) -> None:
        """Learn the error of a window from how far it was from what was expected.

        ``ratio`` is its squared error by the variance that was expected, which is mostly that of b and of the level
        while they are not known (West and Harrison 1997, section 4.5). One that is far off counts as three deviations.
        """
        state = self._state
        lately, windows = state["lately"][row], state["windows"][row]
        state["lately"][row] = np.where(windows > 0, lately + SMOOTHING * chance * (rate - lately), rate)
        state["windows"][row] += 1
        change = (np.minimum(ratio, 9) - 1) / np.minimum(NOISE_WINDOWS + windows, NOISE_MEMORY)
        state["noise"][row] = np.maximum(state["noise"][row] * (1 + np.where(windows > 0, change, 0)), LEAST_NOISE**2)

    def _losses(self, now: Newest) -> list[Loss]:
        part = now.exposure[:, :SUSPECTS] * now.mean[:, 1:1 + SUSPECTS]
        whole = part.sum(axis=1)
        order = np.argsort(-part, axis=1, kind="stable")
        before = np.cumsum(np.take_along_axis(part, order, axis=1), axis=1) - np.take_along_axis(part, order, axis=1)
        at = np.flatnonzero((whole > LEAST_EXPOSURE / 2) & (now.rate > 0))
        named = (np.take_along_axis(part, order, axis=1) > 0) & (before < 0.8 * whole[:, None])
        suspects = [tuple(now.state["slot"][number, order[number, named[number]]].tolist()) for number in at.tolist()]
        costly = np.column_stack((part[at] > 0, np.zeros(len(at), bool)))
        return self._to_columns(now, at, costly, order[at, 0], suspects)

    def _to_rivals(self, now: Newest, recent: RecentWork, kinds: JobKinds, costs: CostTable) -> list[Loss]:
        """Losses to other streams that started while the stream was seen; the stream with most device time is named."""
        streams = now.streams
        came = np.flatnonzero((now.exposure[:, RIVALS] > 0) & (now.rate > 0)
                              & (self._state["came_after"][streams.row, RIVALS] >= SURPRISE_WINDOWS))
        rivals: list[tuple[int, ...]] = []
        for at in came.tolist():
            here = np.isin(recent.target, streams.target[streams.of == at]) & kinds.stream[recent.job] & (
                recent.job != streams.job[at])
            use = np.bincount(recent.job[here], costs.taken(recent.target[here], recent.work[here]))
            rivals.append((int(use.argmax()),))
        costly = np.tile(np.arange(COLUMNS) == RIVALS, (len(came), 1))
        return self._to_columns(now, came, costly, np.full(len(came), RIVALS), rivals)

    def _to_columns(self, now: Newest, at: Ints, costly: Bools, first: Ints,
                    suspects: Sequence[tuple[int, ...]]) -> list[Loss]:
        """The losses of the streams at these indexes to those columns that are costly, of which the first is most."""
        state, streams, row = self._state, now.streams, now.streams.row[at]
        exposure, mean = np.where(costly, now.exposure[at], 0.0), now.mean[at, 1:]
        lost = (exposure * mean).sum(axis=1)
        variance = np.maximum(np.einsum("vi,vij,vj->v", exposure, now.covariance[at, 1:, 1:], exposure), 0.0)
        b, errors, small, of_limit = np.moveaxis(state["prior"][row], 2, 0)
        left = (state["weight"][row][..., None] * state["left"][row]).sum(axis=1)
        of_each = (exposure * errors)**2 / np.maximum(left, 1e-6)
        assumed = np.maximum(of_each.sum(axis=1), 1e-12)
        small_io = np.minimum((exposure * mean * small).sum(axis=1) / np.maximum(lost, 1e-9), 1.0)
        doubt = (of_each * of_limit).sum(axis=1) / assumed
        seen = state["came_after"][row, first] >= SURPRISE_WINDOWS
        just_came = seen & (first < SUSPECTS) & (state["age"][row, first] <= SURPRISE_WINDOWS)
        before = np.where(just_came, np.exp(state["before"][row, first]), 0.0)
        unlearned = (variance > LITTLE_LEARNED**2 * assumed) & ((lost - (exposure * b).sum(axis=1))**2 < assumed)
        came = (now.rate[at] < before) | (~unlearned & seen)
        begin, end = (np.searchsorted(streams.of, at, side).tolist() for side in ("left", "right"))
        columns = (streams.job[at], now.rate[at], lost, np.sqrt(variance + (LASTS * lost)**2 + 1e-6), now.most[at],
                   came, unlearned, state["came_at"][row, first], before, small_io,
                   doubt * variance / np.maximum(lost, 1e-9)**2)
        return [
            Loss(job, suspects[number], tuple(streams.target[begin[number]:end[number]].tolist()), rate, mean,
                 error=error, most=most, carrier=Carrier.ARRIVAL if arrived else Carrier.DEVICE_TIME if by_time else
                 Carrier.HISTORY if job in self._remembered else Carrier.LOAD,
                 came_at=came_at, rate_before=rate_before, limited=limited(of_small_io, relative), small_io=of_small_io)
            for number, (job, rate, mean, error, most, arrived, by_time, came_at, rate_before, of_small_io, relative)
            in enumerate(zip(*(column.tolist() for column in columns), strict=True))]

    def _posterior(self, row: Ints) -> tuple[Floats, Floats]:
        """Mean and covariance over all kinds."""
        mean, covariance, _ = joined(*(self._state[name][row][:, :, None] for name in (
            "weight", "mean", "covariance", "left")))
        return mean[:, 0], covariance[:, 0]


LITTLE_LEARNED = 0.8
"""A posterior with more than this part of the prior's error, and a mean within that error, has learned little from
windows. A choice, for the words of a finding and for what is done first: only what can be undone at no cost."""


def limited(small_io: float, relative: float) -> float:
    """Probability that devices do small I/O at no cost, by what this adds to the variance of a loss.

    ``relative`` is that part of the variance, divided by the square of the loss: what windows teach lowers it, as it
    lowers all of the variance. ``small_io`` is the part of the loss that small I/O causes.

    >>> limited(1.0, 0.25), limited(1.0, 0.0), round(limited(0.5, 0.25 * 0.2), 2)
    (0.2, 0.0, 0.2)
    """
    if small_io <= 0:
        return 0.0
    square = small_io**2
    root = sqrt(max(square - 4 * relative * (1 - small_io), 0.0))
    return min((small_io + 2 * relative - root) / (2 * small_io * (1 + relative)), 1.0)


def rows_on(targets: Ints, of: Ints, target: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The rows of each of these targets, and their streams. ``rows`` are in the order of the column ``target``."""
    first = np.searchsorted(target[rows], targets)
    count = np.searchsorted(target[rows], targets, "right") - first
    return rows[np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())], np.repeat(of, count)


def own_rows(streams: Streams, window: WindowColumns, jobs: int) -> tuple[Ints, Ints]:
    """Rows of the work of each stream on the targets that hold it up, and the streams of these rows."""
    rows = np.flatnonzero(np.isin(window.target * jobs + window.job, streams.target * jobs + streams.job[streams.of]))
    return rows, np.searchsorted(streams.job, window.job[rows])


def others_part(streams: Streams, window: WindowColumns, streaming: Ints, own: tuple[Ints, Ints],
                taken: Floats) -> Floats:
    """Device time of other streams on each stream's targets, as a multiple of its own. ``streaming``: their rows."""
    rows, of = own
    together = np.bincount(window.target[streaming], taken[streaming], streams.target.max() + 1)
    mine = np.bincount(of, taken[rows], len(streams.job))
    others = np.clip(np.bincount(streams.of, together[streams.target]) / np.maximum(mine, 1e-9) - 1, 0, 20)
    return others * ((mine > 0) & (others >= LEAST_EXPOSURE))


def most_lost(streams: Streams, rows: Ints, of: Ints, work: Floats, costs: CostTable) -> Floats:
    """Log of the most that each stream may lose: its own work, by the costs, leaves only the rest of the time."""
    target = streams.target[np.searchsorted(streams.of, np.arange(len(streams.job)))]
    own = sums(of, work[rows], len(streams.job)) / streams.count[:, None]
    part = np.maximum(costs.taken(target, own), 1e-9)
    return np.clip(ERRORS_OF_90_PERCENT * costs.errors(target, own) / part - np.log(part), LEAST_LOST, MOST_LOST)


def doses(taken: Floats, busy: Floats) -> Floats:
    """D of each suspect, from the parts of the time of the stream's targets that they take, and that these are busy;
    and R, from what other streams take as a multiple of the stream's own.
    """
    part = taken[:, :SUSPECTS] / np.clip(busy, 0.3, 1.2)[:, None]
    whole = part.sum(axis=1, keepdims=True)
    of_suspects = -np.log1p(-np.minimum(whole, MOST_EXPOSURE)) * part / np.maximum(whole, 1e-9)
    return np.column_stack((of_suspects, np.log1p(taken[:, RIVALS])))


def joined(chance: Floats, mean: Floats, covariance: Floats, left: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, covariance and what is left of priors by the kind of the newest window, whatever kind the one before was.
    The moments are kept: of several normal distributions, one with the same mean and covariance is made.
    """
    part = np.maximum(chance, 1e-12)  # what cannot be has moments, too
    part /= part.sum(axis=1, keepdims=True)
    means = np.einsum("vpk,vpki->vki", part, mean)
    off = mean - means[:, None]
    covariances = np.einsum("vpk,vpkij->vkij", part, covariance) + np.einsum("vpk,vpki,vpkj->vkij", part, off, off)
    # how far the prior moves the mean is kept
    moves = np.einsum("vpk,vpkj->vkj", part, left * np.einsum("vpkii->vpki", covariance)[..., 1:])
    return means, covariances, moves / np.maximum(np.einsum("vkii->vki", covariances)[..., 1:], 1e-12)

