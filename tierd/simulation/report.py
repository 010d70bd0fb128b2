"""What the variants of a scenario came to: for programs, and as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.jobs import Job
from tierd.simulation.run import Outcome
from tierd.simulation.variants import streams


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


def compare(title: str, jobs: Sequence[Job], outcomes: Mapping[str, Outcome], seconds: float) -> Comparison:
    """Compare over the last part of the run, when tierd has had a minute since the last job came."""
    came = max(job.start_seconds for job in jobs)
    stops = min((job.stop_seconds for job in jobs), default=seconds)
    until = min(seconds, stops)
    return Comparison(title, tuple(jobs), outcomes, min(came + 60, (came + until) / 2), until)


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
        "flash_used_share": round(max((share for _, share in outcome.flash_used), default=0.0), 4),
    }
    if name == "tierd":
        moved = [e for e in outcome.entries if e.kind == "migrate" and e.outcome == "done"]
        found |= {
            "findings": [{"t": time, "kind": f.kind, "aggressor": f.aggressor, "victim": f.victim,
                          "targets": list(f.targets), "directories": list(f.directories)}
                         for time, f in outcome.findings],
            "actions": [{"kind": e.kind, "place": e.place, "outcome": e.outcome, "detail": e.detail}
                        for e in outcome.entries],
            "bytes_moved": sum(e.size_bytes for e in moved),
            "recovered_after_seconds": recovered(comparison, base),
        }
    return found


def recovered(comparison: Comparison, base: float) -> float | None:
    """Seconds from the first finding until the streams were at 97 % of alone again, over 10 s; None if never."""
    outcome = comparison.outcomes["tierd"]
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


def as_text(comparison: Comparison) -> str:
    """For people."""
    data = as_data(comparison)
    who = ", ".join(job.job_id for job in streams(comparison.jobs))
    lines = [comparison.title, "", f"{who} from {comparison.since:.0f} s to {comparison.until:.0f} s:"]
    words = {"alone": "alone", "contended": "as it stands, without tierd",
             "flash_covers": "flash component that holds the files",
             "flash_too_small": "flash component too small", "tierd": "tierd decides"}
    for name, found in data["variants"].items():
        share = f"{found['of_alone']:.0%}" if found["of_alone"] is not None else ""
        what = words.get(name, name.replace("_", " "))
        lines.append(f"  {what:38} {found['streaming_mb_s']:8.1f} MB/s  {share:>5}   "
                     f"flash at most {found['flash_used_share']:.0%} used")
    if "tierd" in comparison.outcomes:
        lines += ["", "What tierd did:"]
        lines += [f"  {time:5.0f} s  {words}" for time, words in comparison.outcomes["tierd"].said] or ["  nothing"]
        recovery = data["variants"]["tierd"]["recovered_after_seconds"]
        if recovery is not None:
            lines.append(f"It was at 97 % of alone {recovery:.0f} s after the finding.")
    return "\n".join(lines)
