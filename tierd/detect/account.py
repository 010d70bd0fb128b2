"""What one job cost one stream, from the posterior of :mod:`tierd.detect.interference`.

In a window, the stream got ``bytes``; without the suspect it would have got ``e^(b D)`` times as much, where D is the
device time that the suspect takes and b what that costs this stream. b becomes better known while the case lasts, so
the windows are kept, and the present b is applied to all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, expm1, hypot, log1p, sqrt

from tierd.detect.gain import VARIES, StreamTrack
from tierd.detect.interference import ERRORS_OF_90_PERCENT, MOST_EXPOSURE
from tierd.model import Finding
from tierd.text import bytes_text, duration_text

MOST_LOST = -log1p(-MOST_EXPOSURE)
"""Logarithm of the largest part that a stream is billed to have lost: that of the largest D."""
CERTAIN = 0.95
"""Probability of a loss from which it is billed: that of the lower end of an interval."""
MAX_WINDOWS = 240
"""Windows of a case. More are joined in pairs: the doses of a long case differ little from one to the next."""


@dataclass(frozen=True, slots=True)
class BilledWindow:
    """A stream in one window with a suspect."""

    bytes: float
    seconds: float
    dose: float
    """D of the suspect."""
    others: float
    """The sum of b D of all other suspects."""


@dataclass(frozen=True, slots=True)
class Lost:
    """What a stream lost, with the interval that holds it with a probability of nine tenths."""

    bytes: float = 0.0
    low_bytes: float = 0.0
    high_bytes: float = 0.0
    seconds: float = 0.0
    """Time that the stream would have needed for these bytes alone."""

    @property
    def is_certain(self) -> bool:
        """Whether the stream lost anything, with a probability of 95%. A bill has nothing else."""
        return self.low_bytes > 0

    def __str__(self) -> str:
        return (f"{bytes_text(self.bytes)} ({bytes_text(max(self.low_bytes, 0.0))} to {bytes_text(self.high_bytes)}), "
                f"{duration_text(self.seconds)}")


@dataclass(slots=True)
class Case:
    """What one stream lost to the aggressor of a finding that holds, on one day."""

    number: int
    begun_at: float
    ended_at: float
    is_noticed: bool = False
    """Whether the loss to all suspects was as large as a finding is about, with ``CERTAIN``, at some time."""
    cost: float = 0.0
    """Mean of b."""
    error: float = 0.0
    """Standard deviation of b."""
    windows: list[BilledWindow] = field(default_factory=list)

    def add(self, window: BilledWindow) -> None:
        if window.dose > 0 and window.seconds > 0:
            self.windows.append(window)
        if len(self.windows) > MAX_WINDOWS:
            self.windows = joined_in_pairs(self.windows)

    def billed(self) -> Lost:
        """What the stream lost; from 0 on if that may have been nothing all the time."""
        lost = self.lost()
        return lost if self.is_noticed else replace(lost, low_bytes=0.0)

    def lost(self) -> Lost:
        margin = ERRORS_OF_90_PERCENT * self.error
        mean, low, high = (self._lost(max(self.cost + each, 0.0)) for each in (0.0, -margin, margin))
        return Lost(mean[0], low[0], high[0], mean[1])

    def _lost(self, cost: float) -> tuple[float, float]:
        """Bytes and seconds for a value of b. What several suspects cost together is shared by their parts of b D."""
        lost_bytes = seconds = 0.0
        for window in self.windows:
            own = cost * window.dose
            together = min(own + window.others, MOST_LOST)
            if own > 0:
                share = own / (own + window.others)
                lost_bytes += window.bytes * expm1(together) * share
                seconds += window.seconds * (1 - exp(-together)) * share
        return lost_bytes, seconds


def joined_in_pairs(windows: Sequence[BilledWindow]) -> list[BilledWindow]:
    """Half as many windows. Bytes and seconds are sums, doses are means by bytes.

    >>> joined_in_pairs([BilledWindow(3e6, 1.0, 0.1, 0.0), BilledWindow(1e6, 1.0, 0.5, 0.4)])
    [BilledWindow(bytes=4000000.0, seconds=2.0, dose=0.2, others=0.1)]
    """
    found = list(windows[len(windows) // 2 * 2:])
    for one, two in zip(windows[::2], windows[1::2], strict=False):
        size = one.bytes + two.bytes
        part = two.bytes / size if size else 0.5
        found.append(BilledWindow(size, one.seconds + two.seconds, one.dose + part * (two.dose - one.dose),
                                  one.others + part * (two.others - one.others)))
    return found


Key = tuple[str, str, str]
"""Kind, aggressor and victim of a finding."""
MAX_LATE_SECONDS = 60.0
"""A case begins when the aggressor started, if that was not longer before it was found. A choice: an aggressor that is
not found in a minute costs little."""


def bill_windows(cases: dict[Key, Case], number: int, finding: Finding, track: StreamTrack) -> None:
    """Enter the windows since the last call into the case of a finding that holds.

    The first one stands for the time since the aggressor started. Later, time in which the stream was not seen is not
    billed: it may have paused. Of another stream, and of a job that lost its place in the model, nothing is entered.
    """
    evidence = finding.evidence.of_stream
    if finding.aggressor not in track.jobs or evidence is None:
        return
    case = cases.get(finding.key)
    if is_first := case is None:
        newest = track.windows[-1]
        since = newest.end - newest.seconds
        if newest.end - MAX_LATE_SECONDS <= evidence.aggressor_came_at < since:
            since = evidence.aggressor_came_at
        case = cases[finding.key] = Case(number, since, since)
    case.is_noticed |= evidence.loss_probability >= CERTAIN
    column = 1 + track.jobs.index(finding.aggressor)
    case.cost = float(track.mean[column])
    case.error = hypot(sqrt(max(track.covariance[column, column], 0.0)), VARIES * case.cost)
    costs = dict(zip(track.jobs, track.mean[1:].tolist(), strict=False))
    for window in track.windows:
        if window.end > case.ended_at:
            seconds = window.end - (case.ended_at if is_first else max(case.ended_at, window.end - window.seconds))
            taken = dict(window.taken)
            dose = taken.pop(finding.aggressor, 0.0)
            others = sum(costs.get(job, 0.0) * each for job, each in taken.items())
            case.add(BilledWindow(exp(window.log_rate) * seconds, seconds, dose, others))
            case.ended_at, is_first = window.end, False


def total(losses: Sequence[Lost]) -> Lost:
    """The sum of losses in cases that have nothing to do with each other.

    >>> total([Lost(10.0, 7.0, 13.0, 1.0), Lost(20.0, 16.0, 24.0, 2.0)])
    Lost(bytes=30.0, low_bytes=25.0, high_bytes=35.0, seconds=3.0)
    """
    mean = sum(each.bytes for each in losses)
    return Lost(mean, mean - hypot(*(each.bytes - each.low_bytes for each in losses)),
                mean + hypot(*(each.high_bytes - each.bytes for each in losses)), sum(each.seconds for each in losses))
