"""Plots a comparison: throughput of the streams over time in each variant, and the acts of tierd."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from tierd.simulation.comparison import Comparison, streams

COLOURS = {"alone": "0.6", "contended": "tab:red", "flash_covers": "tab:green", "flash_too_small": "tab:orange",
           "tierd": "tab:blue"}


def plot(comparison: Comparison, path: Path, smooth_seconds: int = 5) -> None:
    """Write a PNG or SVG file, by the suffix of its name. Raises ValueError for another suffix."""
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
