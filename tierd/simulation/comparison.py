"""The variants of a scenario, compared: alone, with its neighbour, with flash large or small, and with tierd.

A scenario may name its variants itself. For one with streams and small files that names none, they follow from it. The
comparison is available as data and as tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lustre.layout.model import Component, Layout
from simulator.jobs import Job
from simulator.jobs.large_files import StreamingReader, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.scenarios.scenario import Scenario
from tierd import acts
from tierd.decide.sizing import UNIT_BYTES, boundary
from tierd.simulation.run import Outcome
from tierd.text import quoted

WITH_TIERD = "tierd"


def streams(jobs: Sequence[Job]) -> list[Job]:
    """The jobs whose throughput is looked at: those that stream, or all where none does."""
    return [job for job in jobs if isinstance(job, (StreamingWriter, StreamingReader))] or list(jobs)


def variants(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Name and scenario of each; the last is the scenario as it stands, to be run with tierd."""
    named = scenario.variants()
    if not named and any(isinstance(job, SmallFileWriter) for job in scenario.jobs):
        flowing = tuple(job for job in scenario.jobs if isinstance(job, (StreamingWriter, StreamingReader)))
        if flowing:
            named["alone"] = replace(scenario, jobs=flowing)
        named["contended"] = scenario
        for name, whole in (("flash_covers", True), ("flash_too_small", False)):
            named[name] = replace(scenario, jobs=tuple(on_flash(job, whole) for job in scenario.jobs))
    for name, other in (named or {"contended": scenario}).items():
        yield name, without_missing_jobs(other)
    yield WITH_TIERD, without_missing_jobs(scenario)


def without_missing_jobs(scenario: Scenario) -> Scenario:
    """Without the events that change a job it does not have."""
    present = {job.job_id for job in scenario.jobs}
    events = tuple(e for e in scenario.events if "job" not in e.values or e.text("job") in present)
    return replace(scenario, events=events)


def on_flash(job: Job, whole: bool) -> Job:
    """A job of small files with a flash component that holds them, or that holds a quarter of the largest."""
    if not isinstance(job, SmallFileWriter):
        return job
    largest = max(job.sizes)
    end = boundary(largest) if whole else max(UNIT_BYTES, boundary(largest) // 4)
    tail = job.layout.components[-1] if job.layout is not None else Component(pool="hdd")
    return replace(job, layout=Layout((
        Component(0, end, "flash"), replace(tail, extent_start=end, extent_end=None))))


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


def streaming_rate(comparison: Comparison, variant: str) -> float:
    """MB/s of all streams together."""
    outcome = comparison.outcomes[variant]
    return sum(outcome.mean(job.job_id, comparison.since, comparison.until) for job in streams(comparison.jobs))


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """For programs. Rates in MB/s (10^6 bytes), times in virtual seconds from the beginning."""
    base = streaming_rate(comparison, "alone") if "alone" in comparison.outcomes else 0.0
    return {
        "scenario": comparison.title,
        "compared_seconds": [comparison.since, comparison.until],
        "phases": [{"since": since, "until": until} for since, until in comparison.phases],
        "variants": {name: variant_data(comparison, name, base) for name in comparison.outcomes},
    }


def variant_data(comparison: Comparison, name: str, base: float) -> dict[str, Any]:
    """One variant."""
    outcome = comparison.outcomes[name]
    rate = streaming_rate(comparison, name)
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
        moved = [e for e in outcome.entries if e.kind == acts.ActKind.MIGRATE and e.outcome == acts.Outcome.DONE]
        found |= {
            "findings": [{"t": time, "kind": f.kind, "aggressor": f.aggressor, "victim": f.victim,
                          "targets": list(f.targets), "directories": list(f.directories)}
                         for time, f in outcome.findings],
            "actions": [{"t": round(time, 1), "kind": e.kind, "place": e.place, "bytes": e.size_bytes,
                         "outcome": e.outcome, "detail": e.detail}
                        for time, e in zip(outcome.acted_at, outcome.entries, strict=True)],
            "bytes_moved": sum(e.size_bytes for e in moved),
            "files_moved": len(moved),
            "recovered_after_seconds": recovery_seconds(comparison, base),
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


def recovery_seconds(comparison: Comparison, base: float) -> float | None:
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


VARIANT_NAMES = {"alone": "alone", "contended": "as it stands, without tierd",
         "flash_covers": "flash component that holds the files",
         "flash_too_small": "flash component too small", WITH_TIERD: "tierd decides"}
PHASES_SHOWN = 8


def comparison_text(comparison: Comparison) -> str:
    """All of it: each variant, each job, each phase, what tierd did."""
    data = comparison_data(comparison)
    return "\n".join([
        _safe(comparison.title), *_variants(comparison, data), *_jobs(data), *_phases(data), *_tierd(comparison, data),
    ])


def _variants(comparison: Comparison, data: dict[str, Any]) -> Iterator[str]:
    if not any(found["streaming_mb_s"] for found in data["variants"].values()):
        return
    moving = [job.job_id for job in streams(comparison.jobs)]
    yield ""
    yield f"{', '.join(map(quoted, moving))} from {comparison.since:.0f} s to {comparison.until:.0f} s:"
    for name, found in data["variants"].items():
        share = f"{found['of_alone']:.0%}" if found["of_alone"] is not None else ""
        fill = ", ".join(f"{pool} {used['most']:.0%}" for pool, used in found["pools_used_share"].items())
        used = f"   fullest: {fill}" if fill else ""
        yield f"  {_variant_name(name):38} {found['streaming_mb_s']:9.1f} MB/s  {share:>5}{used}"


def _jobs(data: dict[str, Any]) -> Iterator[str]:
    """MB/s and slowdown of every job in every variant; operations where a job does no other."""
    yield ""
    yield "Each job, MB/s, and how many times slower than without neighbours (or, a neighbour, than without tierd):"
    jobs = list(dict.fromkeys(job for found in data["variants"].values() for job in found["jobs_mb_s"]))
    for job in jobs:
        yield f"  {quoted(job)}"
        for name, found in data["variants"].items():
            rate, slower = found["jobs_mb_s"].get(job), found["slowdown"].get(job)
            done = found["operations_per_second"].get(job, {})
            if rate is None:
                continue
            times = f"x {slower:.2f}" if slower is not None else ""
            kinds = "   ".join(f"{what} {per_second:,.0f}/s" for what, per_second in done.items())
            yield f"    {_variant_name(name):38} {rate:9.1f}  {times:8} {kinds}".rstrip()


def _phases(data: dict[str, Any]) -> Iterator[str]:
    spans = data["phases"][:PHASES_SHOWN]
    if len(spans) < 2:
        return
    yield ""
    heads = " ".join(f"{span['since']:4.0f}-{span['until']:3.0f} s" for span in spans)
    yield f"From one change to the next, MB/s:  {heads}"
    for name, found in data["variants"].items():
        if name not in {"contended", WITH_TIERD}:
            continue
        for job, rates in found["phases_mb_s"].items():
            shown = " ".join(f"{rate:10.1f}" for rate in rates[:PHASES_SHOWN])
            yield f"  {'with tierd' if name == WITH_TIERD else 'without':10} {quoted(job):22} {shown}"


def _tierd(comparison: Comparison, data: dict[str, Any]) -> Iterator[str]:
    if WITH_TIERD not in comparison.outcomes:
        return
    found = data["variants"][WITH_TIERD]
    yield ""
    yield "What tierd did:"
    yield from [f"  {time:5.0f} s  {words}" for time, words in comparison.outcomes[WITH_TIERD].log] or ["  nothing"]
    if found["files_moved"]:
        first, last = found["actions"][0]["t"], found["actions"][-1]["t"]
        size = found["bytes_moved"] / 1e6
        yield f"It moved {found['files_moved']} files, {size:,.1f} MB, between {first:.0f} s and {last:.0f} s."
    if found["recovered_after_seconds"] is not None:
        yield f"The streams were at 97 % of alone {found['recovered_after_seconds']:.0f} s after the finding."


def _variant_name(name: str) -> str:
    return VARIANT_NAMES.get(name, _safe(name.replace("_", " ")))


def _safe(text: str) -> str:
    """Without what could disturb a terminal."""
    return text if text.isprintable() else ascii(text)
