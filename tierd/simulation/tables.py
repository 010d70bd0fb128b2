"""What the variants of a scenario came to, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tierd.simulation.report import Comparison, as_data
from tierd.simulation.variants import WITH_TIERD, streams
from tierd.text import quoted

WORDS = {"alone": "alone", "contended": "as it stands, without tierd",
         "flash_covers": "flash component that holds the files",
         "flash_too_small": "flash component too small", WITH_TIERD: "tierd decides"}
PHASES_SHOWN = 8


def as_text(comparison: Comparison) -> str:
    """All of it: each variant, each job, each phase, what tierd did."""
    data = as_data(comparison)
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
        yield f"  {_called(name):38} {found['streaming_mb_s']:9.1f} MB/s  {share:>5}{used}"


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
            yield f"    {_called(name):38} {rate:9.1f}  {times:8} {kinds}".rstrip()


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
    yield from [f"  {time:5.0f} s  {words}" for time, words in comparison.outcomes[WITH_TIERD].said] or ["  nothing"]
    if found["files_moved"]:
        first, last = found["actions"][0]["t"], found["actions"][-1]["t"]
        size = found["bytes_moved"] / 1e6
        yield f"It moved {found['files_moved']} files, {size:,.1f} MB, between {first:.0f} s and {last:.0f} s."
    if found["recovered_after_seconds"] is not None:
        yield f"The streams were at 97 % of alone {found['recovered_after_seconds']:.0f} s after the finding."


def _called(name: str) -> str:
    return WORDS.get(name, _safe(name.replace("_", " ")))


def _safe(text: str) -> str:
    """Without what could disturb a terminal."""
    return text if text.isprintable() else ascii(text)
