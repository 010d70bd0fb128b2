"""Pictures of the report, with matplotlib (``pip install '.[plots]'``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl

from bench.calibration.papers import PAPER_CASES
from bench.calibration.tapes import Episode

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "lustre-tierd"
mpl.rcParams["savefig.transparent"] = False

from matplotlib import pyplot as plt  # noqa: E402 -- the backend comes first
from matplotlib.figure import Figure  # noqa: E402


def noise(found: Mapping[str, float], path: Path) -> None:
    """The figure of the paper, from the model."""
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    shares = [1.0 if name == "alone" else found[name] for name in PAPER_CASES]
    bars = axes.bar([name.replace("_", "\n") for name in PAPER_CASES], shares, color="#4878a8")
    axes.bar_label(bars, [f"{share:.0%}" for share in shares])
    axes.axhspan(0.7, 0.8, color="#d0a040", alpha=0.3, label="published: 20–30% lost beside small files")
    axes.set(ylabel="of the stream alone", ylim=(0, 1.15))
    axes.legend(loc="upper right", fontsize=8)
    _save(figure, path)


def kept(seen: Mapping[str, tuple[Episode, Episode]], path: Path) -> None:
    """What the stream kept, per tape."""
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    places = range(len(seen))
    axes.bar([place - 0.2 for place in places], [one.kept_share for one, _ in seen.values()], 0.4, label="tape")
    axes.bar([place + 0.2 for place in places], [other.kept_share for _, other in seen.values()], 0.4, label="model")
    axes.set_xticks(list(places), [name.replace("-", "\n", 1) for name in seen], fontsize=8)
    axes.set(ylabel="contended / alone")
    axes.legend()
    _save(figure, path)


def distributions(seen: Mapping[str, tuple[Episode, Episode]], path: Path) -> None:
    """RPC sizes and latencies of the stream, per tape."""
    figure, grid = plt.subplots(len(seen), 2, figsize=(8, 1.6 * len(seen)), layout="constrained", squeeze=False)
    for row, (name, (tape, model)) in zip(grid, seen.items(), strict=True):
        for axes, a, b, title in (
            (row[0], tape.rpc_pages, model.rpc_pages, "pages per RPC, log2"),
            (row[1], tape.latency_usec, model.latency_usec, "latency, log2 of 1.024 us"),
        ):
            used = [n for n in range(32) if a[n] > 0.001 or b[n] > 0.001]
            span = range(min(used), max(used) + 1)
            axes.bar([n - 0.2 for n in span], [a[n] for n in span], 0.4, label="tape")
            axes.bar([n + 0.2 for n in span], [b[n] for n in span], 0.4, label="model")
            axes.set_title(f"{name}: {title}", fontsize=8)
            axes.tick_params(labelsize=7)
    grid[0][0].legend(fontsize=7)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
