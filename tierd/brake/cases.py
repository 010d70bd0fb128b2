"""One braked job: the rates of its rules, and what the brake cost it and gave to others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log

from tierd.brake.limits import MIN_TOTAL, Limit, Load, load_of
from tierd.brake.rules import MAX_RATE, OssState
from tierd.detect.gain import StreamTrack
from tierd.model import Finding, Window
from tierd.text import bytes_text, duration_text

BOX_SECONDS = REST_SECONDS = 600.0
"""Longest time of a brake, and time without one after one without a cure. A choice: moves take minutes."""
MEASURE_SECONDS = 20.0
"""Time in force before a brake is measured: some windows, and the RPCs that waited when it began. A choice."""
QUIET_WINDOWS = 3
"""Windows without need of a rule after which the brake ends. A choice."""
RELAXED = 0.3
"""A job that sends less than this part of what it may needs no rule. A choice."""
MAX_WAIT_SECONDS = 60.0
"""Time that a request may wait for its turn. A choice: clients give up after ``at_max``, 600 s."""
MIN_REGAINED = 0.25
"""Part of what the stream lost, as a logarithm, that the victims must regain. A choice."""


@dataclass(slots=True, kw_only=True)
class BrakedJob:
    """What is known of a braked job. One thread at a time uses it."""

    number: int
    """Of the finding that began it."""
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
    def _victims_before(self) -> float:
        return sum(limit.stream.victim_bytes_per_second for limit in self.limits.values())

    @property
    def name(self) -> str:
        """Of its rules."""
        return f"tierd_F{self.number}"

    def update(self, window: Window, tracks: Mapping[str, StreamTrack], known: Collection[OssState],
               jobs: int) -> None:
        """Learn from the newest window, and compute the rates anew. ``jobs`` is the number of its job ids."""
        self.now = load_of(self.finding.aggressor, window)
        if self.in_force_at:
            self.lost_bytes += (self.before.bytes_per_second - self.now.bytes_per_second) * window.seconds
            self.won_bytes += (self._victims(window) - self._victims_before) * window.seconds
        elif any(rule.name == self.name for oss in known for rule in oss.rules):
            self.in_force_at = window.end
        for victim, limit in self.limits.items():
            limit.update(tracks.get(victim), self.now)
        self.rates = {oss.node: rate for oss in known if (rate := self._rate(oss, jobs))}
        needed = bool(self.rates) and any(self.now.on(limit.finding.targets) >= RELAXED * limit.rpcs_per_second
                                          for limit in self.limits.values())
        self.quiet = 0 if needed else self.quiet + 1

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
        wanted = max(least, oss.queued / MAX_WAIT_SECONDS)
        if wanted >= self.before.on(oss.targets) or wanted < classes / 2:
            return 0
        return min(max(round(wanted / classes), 1), 2 * former or MAX_RATE)

    def _victims(self, window: Window) -> float:
        return sum(load_of(victim, window).bytes_per_second for victim in self.limits)

    def end(self, windows: Sequence[Window], now: float) -> tuple[str, float] | None:
        """Why the brake ends, and how long it must not begin again; None if it goes on."""
        if self.quiet >= QUIET_WINDOWS:
            return "it hardly loads their targets any more", 0.0
        if now >= self.began_at + BOX_SECONDS:
            return f"{duration_text(BOX_SECONDS)} have passed", REST_SECONDS
        if now < (self.in_force_at or self.began_at) + MEASURE_SECONDS:
            return None
        if not self.in_force_at:
            return "no OSS has set its rule", REST_SECONDS
        lately = windows[-3:]
        victims = sum(map(self._victims, lately)) / len(lately)
        job = sum(load_of(self.finding.aggressor, window).bytes_per_second for window in lately) / len(lately)
        was = max(self._victims_before, 1.0)
        if not victims:
            return "they have ended", 0.0
        if victims + job < MIN_TOTAL * (was + self.before.bytes_per_second):
            return "it cost more than it gave", REST_SECONDS
        if log(victims / was) < MIN_REGAINED * min(log(limit.stream.slowdown) for limit in self.limits.values()):
            return "they did not get faster", REST_SECONDS
        return None

    @property
    def account(self) -> str:
        won, lost = (bytes_text(max(size, 0.0)) for size in (self.won_bytes, self.lost_bytes))
        return f"{self.finding.aggressor} moved about {lost} less than before, {' and '.join(self.limits)} {won} more"
