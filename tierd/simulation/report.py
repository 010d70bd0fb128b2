"""What the variants of a scenario came to, and the same for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.jobs import Job
from tierd.simulation.run import Outcome
from tierd.simulation.variants import WITH_TIERD, streams

PHASE_SECONDS_MIN = 2.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """The variants of one scenario."""

    title: str
    jobs: tuple[Job, ...]
    outcomes: Mapping[str, Outcome]
    """By the name of the variant."""
    since: float
    until: float
    """The interval that is compared: when the neighbour had been at work for a minute, up to the end."""
    phases: tuple[tuple[float, float], ...] = ()
    """From one change of who is at work, or of what happens to the cluster, to the next."""


def compare(title: str, jobs: Sequence[Job], outcomes: Mapping[str, Outcome], seconds: float,
            changes: Iterable[float] = ()) -> Comparison:
    """Compare over the last part of the run, when tierd has had a minute since the last job came."""
    came = max(job.start_seconds for job in jobs)
    stops = min((job.stop_seconds for job in jobs), default=seconds)
    until = min(seconds, stops)
    times = {time for job in jobs for time in (job.start_seconds, job.stop_seconds)} | set(changes)
    return Comparison(title, tuple(jobs), outcomes, min(came + 60, (came + until) / 2), until, phases(times, seconds))


def phases(changes: Iterable[float], seconds: float) -> tuple[tuple[float, float], ...]:
    """Spans of some length between changes.

    >>> phases([0.0, 30.0, 31.0, float("inf")], 100.0)
    ((0.0, 30.0), (30.0, 100.0))
    """
    bounds = [0.0]
    for change in sorted(changes):
        if bounds[-1] + PHASE_SECONDS_MIN <= change <= seconds - PHASE_SECONDS_MIN:
            bounds.append(change)
    return tuple(zip(bounds, [*bounds[1:], seconds], strict=True))


def streaming(comparison: Comparison, variant: str) -> float:
    """MB/s of all streams together."""
    outcome = comparison.outcomes[variant]
    return sum(outcome.mean(job.job_id, comparison.since, comparison.until) for job in streams(comparison.jobs))


def as_data(comparison: Comparison) -> dict[str, Any]:
    """For programs. Rates in MB/s (10^6 bytes), times in virtual seconds from the beginning."""
    base = streaming(comparison, "alone") if "alone" in comparison.outcomes else 0.0
    return {
        "scenario": comparison.title,
        "compared_seconds": [comparison.since, comparison.until],
        "phases": [{"since": since, "until": until} for since, until in comparison.phases],
        "variants": {name: variant(comparison, name, base) for name in comparison.outcomes},
    }


def variant(comparison: Comparison, name: str, base: float) -> dict[str, Any]:
    """One variant."""
    outcome = comparison.outcomes[name]
    rate = streaming(comparison, name)
    found: dict[str, Any] = {
        "streaming_mb_s": round(rate, 2),
        "of_alone": round(rate / base, 4) if base else None,
        "jobs_mb_s": {job: round(outcome.mean(job, comparison.since, comparison.until), 2) for job in outcome.rates},
        "slowdown": {job: _rounded(slowdown(comparison, name, job)) for job in outcome.rates},
        "operations_per_second": {job: {what: round(rate, 1) for what, rate in done.items()}
                                  for job, done in outcome.operations.items() if done},
        "phases_mb_s": {job: [round(outcome.mean(job, *phase), 2) for phase in comparison.phases]
                        for job in outcome.rates},
        "flash_used_share": round(max(outcome.pools_used.get("flash", ()), default=0.0), 4),
        "pools_used_share": {pool: {"most": round(max(shares), 4), "end": round(shares[-1], 4)}
                             for pool, shares in outcome.pools_used.items()},
    }
    if name == WITH_TIERD:
        moved = [e for e in outcome.entries if e.kind == "migrate" and e.outcome == "done"]
        found |= {
            "findings": [{"t": time, "kind": f.kind, "aggressor": f.aggressor, "victim": f.victim,
                          "targets": list(f.targets), "directories": list(f.directories)}
                         for time, f in outcome.findings],
            "actions": [{"t": round(time, 1), "kind": e.kind, "place": e.place, "bytes": e.size_bytes,
                         "outcome": e.outcome, "detail": e.detail}
                        for time, e in zip(outcome.acted_at, outcome.entries, strict=True)],
            "bytes_moved": sum(e.size_bytes for e in moved),
            "files_moved": len(moved),
            "recovered_after_seconds": recovered(comparison, base),
        }
    return found


def slowdown(comparison: Comparison, name: str, job: str) -> float | None:
    """How many times slower a job is than without neighbours (where it was alone), or than without tierd."""
    for reference in ("alone", "contended"):
        base = comparison.outcomes.get(reference)
        rate = comparison.outcomes[name].mean(job, comparison.since, comparison.until)
        if base is not None and job in base.rates:
            usual = base.mean(job, comparison.since, comparison.until)
            return usual / rate if rate and usual else None
    return None


def recovered(comparison: Comparison, base: float) -> float | None:
    """Seconds from the first finding until the streams were at 97 % of alone again, over 10 s; None if never."""
    outcome = comparison.outcomes[WITH_TIERD]
    if not outcome.findings or not base:
        return None
    begun = outcome.findings[0][0]
    time = begun
    while time + 10 <= comparison.until:
        rate = sum(outcome.mean(job.job_id, time, time + 10) for job in streams(comparison.jobs))
        if rate >= 0.97 * base:
            return time - begun
        time += 1
    return None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
