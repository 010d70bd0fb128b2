"""One braked job: how far it is slowed, the rates of its rules, and what the brake cost it and gave to others.

According to the posterior of :mod:`tierd.detect.interference`, a stream gets ``e^(-b D)`` of its rate while a job takes
D of its targets' time. D goes with the job's RPCs there, so a limit of RPCs is one of D. The job's loss counts too: of
the limits that leave the stream at least nine tenths, the first is used with which both jobs together move 95% of what
they moved before. If none does, there is no brake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, inf, log, log1p, sqrt

from tierd.brake.rules import MAX_RATE, OssState
from tierd.detect.gain import StreamTrack
from tierd.loads import Loads
from tierd.model import Finding, SlowdownEvidence, Window
from tierd.text import duration_text

BOX_SECONDS = REST_SECONDS = 600.0
"""Longest time of a brake, and the pause after a brake that no other layout ended. A choice: moves take minutes."""
MEASURE_SECONDS = 20.0
"""Time in force before a brake is measured: some windows, and the RPCs that waited when it began. A choice."""
QUIET_WINDOWS = 3
"""Windows without need of a rule after which the brake ends. A choice."""
RELAXED = 0.3
"""A job that sends less than this part of its limit needs no rule. A choice."""
MAX_WAIT_SECONDS = 60.0
"""Time that a request may wait for its turn. A choice: clients give up after ``at_max``, 600 s."""
STOPPED = 0.5
"""Part of what the victims moved beside the job below which the brake ends at once. On a node that they share, waiting
RPCs of the job can take the slots of theirs (LU-7982): a stream then stopped. A choice."""
MIN_REGAINED = 0.25
"""Part of what the stream lost, as a logarithm, that the victims must regain. A choice."""


@dataclass(slots=True, kw_only=True)
class BrakedJob:
    """What is known of a braked job. One thread at a time uses it."""

    number: int
    """Of the finding that began it."""
    fs: str
    finding: Finding
    began_at: float
    before: Load
    limits: dict[str, Limit] = field(default_factory=dict)
    """By victim."""
    now: Load
    in_force_at: float = 0.0
    """When an OSS first reported its rule; 0 before."""
    rates: dict[str, int] = field(default_factory=dict)
    """Rate of the rule on each OSS that needs one."""
    quiet: int = 0
    """Windows in a row without need of a rule."""
    lost_bytes: float = 0.0
    """What the job moved less than before; ``won_bytes``: what the victims moved more."""
    won_bytes: float = 0.0

    @property
    def name(self) -> str:
        """Of its rules, with as many digits as Lustre has room for."""
        return f"tierd{self.number % 10 ** (9 - len(self.fs))}_{self.fs}"

    def update(self, window: Window, tracks: Mapping[str, StreamTrack], known: Collection[OssState], jobs: int) -> None:
        """Learn from the newest window, and compute the rates again. ``jobs`` is the number of its job ids."""
        self.now = load_of(self.finding.aggressor, window)
        if self.in_force_at:
            self.lost_bytes += (self.before.bytes_per_second - self.now.bytes_per_second) * window.seconds
            self.won_bytes += window.seconds * sum(
                load_of(victim, window).bytes_per_second - limit.stream.victim_bytes_per_second
                for victim, limit in self.limits.items())
        elif any(rule.name == self.name for oss in known for rule in oss.rules):
            self.in_force_at = window.end
        for victim, limit in self.limits.items():
            limit.update(tracks.get(victim), self.now)
        self.set_rates(known, jobs)
        needed = bool(self.rates) and any(self.now.on(limit.finding.targets) >= RELAXED * limit.rpcs_per_second
                                          for limit in self.limits.values())
        self.quiet = 0 if needed else self.quiet + 1

    def set_rates(self, known: Collection[OssState], jobs: int) -> None:
        self.rates = {oss.node: rate for oss in known if (rate := self._rate(oss, jobs))}

    def _rate(self, oss: OssState, jobs: int) -> int:
        """Requests per second for each class of the rule on an OSS; 0 if it need not be slowed there, or cannot be.

        The rule holds for all OSTs of the OSS. As files of the job land on other targets, more of its RPCs go there,
        and the rate rises. Each class has a bucket on each CPT (LU-17158), so the rate is divided by the classes.
        """
        former, sent = self.rates.get(oss.node, 0), self.now.on(oss.targets)
        if sent < 1:
            return former
        least = inf
        for limit in self.limits.values():
            shared = [target for target in limit.finding.targets if target in oss.targets]
            here = self.before.on(shared) / max(self.before.on(limit.finding.targets), 1e-9)
            part = self.now.on(shared) / sent
            least = min(least, limit.rpcs_per_second * here / part) if here > 0 and part > 0 else least
        classes = next((rule.classes for rule in oss.rules if rule.name == self.name), 0) or oss.partitions * jobs
        classes = min(max(classes, 1), MAX_RATE)  # what is reported may be any number
        wanted = max(least, min(oss.queued, MAX_RATE) / MAX_WAIT_SECONDS)
        if wanted >= self.before.on(oss.targets) or wanted < classes / 2:
            return 0
        return min(max(round(wanted / classes), 1), 2 * former or MAX_RATE)

    def end(self, windows: Sequence[Window], now: float) -> tuple[str, float] | None:
        """Why the brake ends, and how long it must not begin again; None if it continues."""
        if self.quiet >= QUIET_WINDOWS:
            return "it no longer loads their targets noticeably", 0.0
        if now < self.began_at:
            return "the clock was set back", REST_SECONDS
        if now >= self.began_at + BOX_SECONDS:
            return f"{duration_text(BOX_SECONDS)} have passed", REST_SECONDS
        was = max(sum(limit.stream.victim_bytes_per_second for limit in self.limits.values()), 1.0)
        if 0 < self.in_force_at < windows[-1].end and moved(self.limits, windows[-1:]) < STOPPED * was:
            return "the streams move less than half as much as before", REST_SECONDS
        if now < (self.in_force_at or self.began_at) + MEASURE_SECONDS:
            return None
        if not self.in_force_at:
            return "no OSS has set its rule", REST_SECONDS
        if not (since := [window for window in windows[-3:] if window.end > self.in_force_at]):
            return None
        victims, job = moved(self.limits, since), moved((self.finding.aggressor,), since)
        if victims + job < MIN_TOTAL * (was + self.before.bytes_per_second):
            return "it cost more bytes than it gained", REST_SECONDS
        if log(victims / was) < MIN_REGAINED * min(log(limit.stream.slowdown) for limit in self.limits.values()):
            return "they did not get faster", REST_SECONDS
        return None


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


def moved(jobs: Collection[str], windows: Sequence[Window]) -> float:
    """Bytes per second of these jobs together, as a mean of the windows."""
    return sum(load_of(job, window).bytes_per_second for job in jobs for window in windows) / len(windows)


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
    """The evidence about the stream, from before the brake."""
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

    If the aggressor is a stream, which no layout helps, and it moves more than three quarters of what both move, it
    gets half, or what the victim cannot use.
    """
    rpcs, moved, victim = load.on(finding.targets), load.bytes_per_second, stream.victim_bytes_per_second
    if finding.advice_only:
        kept = 1 - (min(stream.victim_usual_bytes_per_second, (victim + moved) / 2) - victim) / max(moved, 1.0)
        return Limit(finding, stream, 0.0, kept * rpcs) if moved > 3 * victim and rpcs >= 1 and kept < LITTLE else None
    known = cost_of(track, finding.aggressor)
    made = Limit(finding, stream, acceptable_loss(*known, victim, moved) or 0.0 if known else 0.0)
    made.update(track, load)
    return made if made.rpcs_per_second else None
