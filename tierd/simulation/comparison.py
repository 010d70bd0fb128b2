"""Compares the variants of a scenario: alone, with its neighbour, with large or small flash components, and with tierd.

A scenario may define its variants. Otherwise they are derived from its streams and its jobs of small files. The
comparison is available as data, as tables and as a plot: throughput of the streams over time, and the acts of tierd.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lustre.layout.model import Component, Layout
from simulator.jobs import Job, io500
from simulator.jobs.large_files import StreamingReader, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.scenarios.scenario import Scenario
from tierd import acts
from tierd.decide.sizing import UNIT_BYTES, boundary
from tierd.simulation.run import Outcome
from tierd.text import bytes_text, count_of, printable, quoted, rate_text

WITH_TIERD = "tierd"


def streams(jobs: Sequence[Job]) -> list[Job]:
    """Jobs whose throughput is compared: the streaming jobs, or all jobs without any."""
    return [job for job in jobs if isinstance(job, (StreamingWriter, StreamingReader))] or list(jobs)


def variants(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Yield name and scenario of each variant. The last is the unchanged scenario, for the run with tierd."""
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
    """Remove the events that change jobs which the scenario lacks."""
    present = {job.job_id for job in scenario.jobs}
    events = tuple(e for e in scenario.events if "job" not in e.values or e.values["job"] in present)
    return replace(scenario, events=events)


def on_flash(job: Job, whole: bool) -> Job:
    """Give a job of small files a flash component that covers its files, or a quarter of the largest."""
    if not isinstance(job, SmallFileWriter):
        return job
    largest = max(job.sizes)
    end = boundary(largest) if whole else max(UNIT_BYTES, boundary(largest) // 4)
    tail = job.layout.components[-1] if job.layout is not None else Component(pool="hdd")
    return replace(job, layout=Layout((Component(0, end, "flash"), replace(tail, extent_start=end, extent_end=None))))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The variants of one scenario."""

    title: str
    jobs: tuple[Job, ...]
    outcomes: Mapping[str, Outcome]
    """Outcomes by name of the variant."""
    since: float
    until: float
    """End of the compared interval. It starts one minute after the last job."""
    tierd_starts: float = 0.0
    """When tierd starts; virtual seconds."""


def compare(title: str, jobs: Sequence[Job], outcomes: Mapping[str, Outcome], seconds: float,
            tierd_starts: float = 0.0) -> Comparison:
    """Compare the outcomes from one minute after the last job's start."""
    came = max(job.start_seconds for job in jobs)
    stops = min((job.stop_seconds for job in jobs), default=seconds)
    until = min(seconds, stops)
    return Comparison(title, tuple(jobs), outcomes, min(came + 60, (came + until) / 2), until,
                      tierd_starts=tierd_starts)


def streaming_rate(comparison: Comparison, variant: str) -> float:
    """Sum of the MB/s of all streams."""
    outcome = comparison.outcomes[variant]
    return sum(outcome.mean(job.job_id, comparison.since, comparison.until) for job in streams(comparison.jobs))


Data = dict[str, Any]


def comparison_data(comparison: Comparison) -> Data:
    """The variants of a scenario, as ``tierctl simulate --json`` prints them. Rates in MB/s (10^6 bytes)."""
    base = streaming_rate(comparison, "alone") if "alone" in comparison.outcomes else 0.0
    return {
        "scenario": comparison.title,
        "compared_seconds": [comparison.since, comparison.until],
        "variants": {name: variant_data(comparison, name, base) for name in comparison.outcomes},
    }


def io500_data(outcome: Outcome) -> dict[str, float]:
    """Means and score of an IO500 job that ran all its phases; empty without one."""
    scores = (io500.score(done) for done in outcome.operations.values())
    found = next((score for score in scores if score is not None), None)
    if found is None:
        return {}
    return {"bandwidth_gib_s": round(found.bandwidth_gib_s, 3), "operations_k_s": round(found.operations_k_s, 3),
            "score": round(found.total, 3)}


def variant_data(comparison: Comparison, name: str, base: float) -> Data:
    outcome = comparison.outcomes[name]
    rate = streaming_rate(comparison, name)
    found: Data = {
        "streaming_mb_s": round(rate, 2),
        "of_alone": round(rate / base, 4) if base else None,
        "jobs_mb_s": {job: round(outcome.mean(job, comparison.since, comparison.until), 2) for job in outcome.rates},
        "slowdown": {job: None if (slower := slowdown(comparison, name, job)) is None else round(slower, 3)
                     for job in outcome.rates},
        "operations_per_second": {job: {what: round(rate, 1) for what, rate in done.items()}
                                  for job, done in outcome.operations.items() if done},
        "pools_used_share": {pool: {"most": round(max(shares), 4), "end": round(shares[-1], 4)}
                             for pool, shares in outcome.pools_used.items()},
    }
    if scored := io500_data(outcome):
        found["io500"] = scored
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
    """Slowdown of a job against the run without neighbours, or else without tierd; None without such a run."""
    for reference in ("alone", "contended"):
        base = comparison.outcomes.get(reference)
        rate = comparison.outcomes[name].mean(job, comparison.since, comparison.until)
        if base is not None and job in base.rates:
            usual = base.mean(job, comparison.since, comparison.until)
            return usual / rate if rate and usual else None
    return None


def recovery_seconds(comparison: Comparison, base: float) -> float | None:
    """Seconds from the first finding about a slow job until the streams reach 97% of their rate alone, over 10 s.

    None if they never do. Other findings, such as advice about a mount, say nothing about the streams.
    """
    outcome = comparison.outcomes[WITH_TIERD]
    begun = min((time for time, finding in outcome.findings if finding.victim), default=None)
    if begun is None or not base:
        return None
    time = begun
    while time + 10 <= comparison.until:
        rate = sum(outcome.mean(job.job_id, time, time + 10) for job in streams(comparison.jobs))
        if rate >= 0.97 * base:
            return time - begun
        time += 1
    return None


VARIANT_NAMES = {"alone": "alone", "contended": "unchanged, without tierd",
         "flash_covers": "flash component covers the files",
         "flash_too_small": "flash component too small", WITH_TIERD: "with tierd"}


def comparison_text(comparison: Comparison) -> str:
    """The comparison for people: variants, jobs and the log of tierd."""
    data = comparison_data(comparison)
    return "\n".join([printable(comparison.title), *_variants(comparison, data), *_jobs(data), *_io500(data),
                      *_tierd(comparison, data)])


def _variants(comparison: Comparison, data: Data) -> Iterator[str]:
    if not any(found["streaming_mb_s"] for found in data["variants"].values()):
        return
    moving = [job.job_id for job in streams(comparison.jobs)]
    yield ""
    yield f"{', '.join(map(quoted, moving))} from {comparison.since:.0f} s to {comparison.until:.0f} s:"
    for name, found in data["variants"].items():
        share = f"{found['of_alone']:.0%}" if found["of_alone"] is not None else ""
        fill = ", ".join(f"{pool} {used['most']:.0%}" for pool, used in found["pools_used_share"].items())
        used = f"   fullest: {fill}" if fill else ""
        yield f"  {_variant_name(name):38} {_rate(found['streaming_mb_s']):>12}  {share:>5}{used}"


def _jobs(data: Data) -> Iterator[str]:
    yield ""
    yield "Throughput of each job, and its slowdown against the run alone (neighbours: against the run without tierd):"
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
            yield f"    {_variant_name(name):38} {_rate(rate):>12}  {times:8} {kinds}".rstrip()


def _io500(data: Data) -> Iterator[str]:
    scored = {name: found["io500"] for name, found in data["variants"].items() if "io500" in found}
    if scored:
        yield ""
        yield "IO500 (ior phases above in MiB/s):"
    for name, found in scored.items():
        yield (f"  {_variant_name(name):38} score {found['score']:.3f}   "
               f"bandwidth {found['bandwidth_gib_s']:.3f} GiB/s   IOPS {found['operations_k_s']:.3f} k/s")


def _tierd(comparison: Comparison, data: Data) -> Iterator[str]:
    if WITH_TIERD not in comparison.outcomes:
        return
    found = data["variants"][WITH_TIERD]
    yield ""
    since = f" from {comparison.tierd_starts:.0f} s on" if comparison.tierd_starts else ""
    yield f"What tierd did{since}:"
    lines = [f"  {time:5.0f} s  {printable(words)}" for time, words in comparison.outcomes[WITH_TIERD].log]
    yield from lines or ["  nothing"]
    if found["files_moved"]:
        first, last = found["actions"][0]["t"], found["actions"][-1]["t"]
        files, size = count_of(found["files_moved"], "file"), bytes_text(found["bytes_moved"])
        yield f"It moved {files}, {size}, between {first:.0f} s and {last:.0f} s."
    if found["recovered_after_seconds"] is not None:
        after = found["recovered_after_seconds"]
        yield f"From {after:.0f} s after the finding, the streams have 97% of the throughput that they have alone."


def _rate(mb_per_second: float) -> str:
    return rate_text(mb_per_second * 1e6)


def _variant_name(name: str) -> str:
    return VARIANT_NAMES.get(name, printable(name.replace("_", " ")))


COLOURS = {"alone": "0.6", "contended": "tab:red", "flash_covers": "tab:green", "flash_too_small": "tab:orange",
           "tierd": "tab:blue"}


def plot(comparison: Comparison, path: Path, smooth_seconds: int = 5) -> None:
    """Write a PNG or SVG file, by the suffix of its name. Raises ValueError for another suffix."""
    from matplotlib.figure import Figure  # noqa: PLC0415 -- an extra, and slow to load

    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.add_subplot()
    for name, outcome in comparison.outcomes.items():
        rates = [sum(outcome.mean(job.job_id, max(0, t - smooth_seconds), t) for job in streams(comparison.jobs))
                 for t in range(1, int(outcome.seconds))]
        axes.plot(range(1, len(rates) + 1), rates, label=name.replace("_", " "), color=COLOURS.get(name),
                  linewidth=2.2 if name == "tierd" else 1.2)
    if "tierd" in comparison.outcomes:
        marks: dict[float, list[str]] = {}
        for time, words in comparison.outcomes["tierd"].log:
            if words.startswith(("FOUND", "SET", "QUEUED", "KEPT", "UNDO")):
                marks.setdefault(time, []).append(words.split(" ")[0].rstrip(":").lower())
        for time, verbs in marks.items():
            axes.axvline(time, color="tab:blue", linestyle=":", linewidth=0.8)
            axes.text(time, 0.5, f" {', '.join(dict.fromkeys(verbs))}", rotation=90, fontsize=8)
    axes.set(title=comparison.title, xlabel="seconds", ylabel="streams, MB/s", ylim=(0, None))
    axes.legend(loc="lower right")
    figure.savefig(path)
