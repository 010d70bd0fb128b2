"""How far a job is slowed, from the posterior of :mod:`tierd.detect.interference`.

A stream gets ``e^(-b D)`` of its rate beside a job that takes D of its targets' time. D goes with the job's RPCs there,
so a limit of RPCs is one of D. What the job loses counts: of limits that leave the stream at least nine tenths, the
first one is taken with which both together move 95% of what they moved before; without one, there is no brake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import exp, log1p, sqrt

from tierd.detect.gain import StreamTrack
from tierd.loads import Loads
from tierd.model import Finding, SlowdownEvidence, Window

LOSSES = (0.05, 0.075, 0.1)
"""Parts of its throughput that the stream may still lose, the best first."""
MIN_TOTAL = 0.95
"""Part of their bytes that both jobs must still move together."""
LITTLE = 0.9
"""A job that may keep more of its RPCs than this is not slowed. A choice."""
SMOOTHING = 0.3
"""Weight of the newest window in what an RPC takes. A choice."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a job does in a window."""

    bytes_per_second: float
    """On all targets."""
    rpcs: Mapping[str, float]
    """RPCs per second on each target: bulk, sync and punch, which ``ost_io`` serves, and few others."""

    def on(self, targets: Collection[str]) -> float:
        return sum(self.rpcs.get(target, 0.0) for target in targets)


def load_of(job: str, window: Window) -> Load:
    loads = Loads.of(window.loads)
    found = [(target, load, window.seconds_of(target))
             for (target, _), load in loads.rows(loads.jobs_among((job,))).items()]
    return Load(sum(load.moved_bytes / seconds for _, load, seconds in found),
                {target: load.operations / seconds for target, load, seconds in found})


def allowed_dose(lost: float, cost: float, error: float) -> float:
    """D with which a stream loses this part, if b is one standard deviation above its mean."""
    return -log1p(-lost) / max(cost + error, 1e-9)


def acceptable_loss(dose: float, cost: float, error: float, victim: float, job: float) -> float | None:
    """Loss that the stream keeps under a brake; None if a brake would do little, or cost more than it gives.

    ``victim`` and ``job`` are their present rates in bytes per second.

    >>> acceptable_loss(0.4, 0.8, 0.1, victim=50e6, job=5e6), acceptable_loss(0.4, 0.8, 0.1, victim=50e6, job=50e6)
    (0.05, None)
    """
    for lost in LOSSES:
        kept = allowed_dose(lost, cost, error) / dose
        if kept < LITTLE and victim * exp(cost * dose * (1 - kept)) + job * kept >= MIN_TOTAL * (victim + job):
            return lost
    return None


@dataclass(slots=True)
class Limit:
    """The RPCs that a job may send to the targets of one stream."""

    finding: Finding
    stream: SlowdownEvidence
    """What it says about the stream, before the brake."""
    lost: float
    """Part of its throughput that the stream may lose; 0 for a fair share with another stream."""
    rpcs_per_second: float = 0.0
    dose_per_rpc: float = 0.0
    """D for each RPC per second."""

    def update(self, track: StreamTrack | None, load: Load) -> None:
        """Learn from the newest window, in which the rule may have been in force."""
        rpcs, known = load.on(self.finding.targets), cost_of(track, self.finding.aggressor)
        if known and self.lost and rpcs >= 1:
            dose, *cost = known
            self.dose_per_rpc += (SMOOTHING if self.dose_per_rpc else 1.0) * (dose / rpcs - self.dose_per_rpc)
            self.rpcs_per_second = allowed_dose(self.lost, *cost) / self.dose_per_rpc


def cost_of(track: StreamTrack | None, job: str) -> tuple[float, float, float] | None:
    """D in the newest window, and mean and standard deviation of b, of a job for a stream; None if it takes nothing."""
    if track is None or job not in track.jobs or not (dose := track.windows[-1].taken.get(job)):
        return None
    column = 1 + track.jobs.index(job)
    return dose, float(track.mean[column]), sqrt(max(float(track.covariance[column, column]), 0.0))


def limit_of(finding: Finding, stream: SlowdownEvidence, track: StreamTrack | None, load: Load) -> Limit | None:
    """The limit for a finding; None if a brake would do little or harm, or the posterior does not say how much.

    Of a finding with another stream, for which no layout helps, a stream that moves more than three quarters of what
    both move gets half, or what the other one cannot use.
    """
    rpcs, moved, victim = load.on(finding.targets), load.bytes_per_second, stream.victim_bytes_per_second
    if finding.advice_only:
        kept = 1 - (min(stream.victim_usual_bytes_per_second, (victim + moved) / 2) - victim) / max(moved, 1.0)
        return Limit(finding, stream, 0.0, kept * rpcs) if moved > 3 * victim and rpcs >= 1 and kept < LITTLE else None
    known = cost_of(track, finding.aggressor)
    made = Limit(finding, stream, acceptable_loss(*known, victim, moved) or 0.0 if known else 0.0)
    made.update(track, load)
    return made if made.rpcs_per_second else None
