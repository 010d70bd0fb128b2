"""``python -m bench.calibration [--out DIR] [--quick]``: run all comparisons, write ``calibration.md`` and pictures."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from bench.calibration import Row, costs, markdown, papers, tapes
from bench.calibration.tapes import Episode

NOISE_VARIATIONS: tuple[tuple[str, int | None, int | None], ...] = (
    ("as the scenario has it", None, None),
    ("chunk of 128 KiB", 128 << 10, None),
    ("chunk of 256 KiB", 256 << 10, None),
    ("mdtest on 2 of 15 nodes", None, 2),
    ("mdtest on 4 of 17 nodes", None, 4),
)


def main() -> None:
    """Run all comparisons, which takes some minutes."""
    parser = argparse.ArgumentParser(prog="python -m bench.calibration", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "docs")
    parser.add_argument("--quick", action="store_true", help="shorter runs, no pictures")
    chosen = parser.parse_args()
    pictures = chosen.out / "calibration"
    pictures.mkdir(parents=True, exist_ok=True)
    seconds = 3.0 if chosen.quick else 8.0
    besides = {label: papers.noisy_neighbour_shares(seconds, chunk, nodes) for label, chunk, nodes in NOISE_VARIATIONS}
    seen = {name: (tapes.recorded(name), tapes.simulated(name)) for name in tapes.JOBS}
    text = report(besides, papers.rows(), seen, costs.rows())
    (chosen.out / "calibration.md").write_text(text, encoding="utf-8")
    if not chosen.quick:
        from bench.calibration import pictures as draw  # noqa: PLC0415 -- matplotlib is optional

        draw.noise(besides[NOISE_VARIATIONS[0][0]], pictures / "noisy-neighbour.svg")
        draw.kept(seen, pictures / "tapes-kept.svg")
        draw.distributions(seen, pictures / "tapes-distributions.svg")
    print(text)


def report(
    besides: Mapping[str, Mapping[str, float]], published: list[Row], seen: Mapping[str, tuple[Episode, Episode]],
    charged: list[Row],
) -> str:  # fmt: skip
    """Return the whole document."""
    head = Path(__file__).with_name("report.md").read_text(encoding="utf-8")
    return head.format(
        noise=_noise(besides), papers=markdown(published, "published"),
        kept=markdown(_kept(seen), "tape"), rpcs=_rpcs(seen),
        costs=markdown(charged, "measured", 1),
    )  # fmt: skip


def _noise(besides: Mapping[str, Mapping[str, float]]) -> str:
    names = papers.PAPER_CASES[1:]
    text = "| | alone MB/s | " + " | ".join(name.replace("_", " ") for name in names) + " |\n"
    text += "|---|---:|" + "---:|" * len(names) + "\n"
    for label, found in besides.items():
        text += f"| {label} | {found['alone']:.0f} | " + " | ".join(f"{found[name]:.2f}" for name in names) + " |\n"
    return text


def _kept(seen: Mapping[str, tuple[Episode, Episode]]) -> list[Row]:
    rows = []
    for name, (tape, model) in seen.items():
        clean = tapes.QUIET_HOST_SHARE.get(name)
        again = ""
        if clean:
            again = f"repetition on a quiet host: {clean:.2f}, model / repetition {model.kept_share / clean:.2f}"
        rows.append(Row(name, tape.kept_share, model.kept_share, again))
    return rows


def _rpcs(seen: Mapping[str, tuple[Episode, Episode]]) -> str:
    text = "| | mean pages per RPC: tape, model, ratio | mean latency ms: tape, model, ratio "
    text += "| sizes apart | latencies apart |\n"
    text += "|---|---:|---:|---:|---:|\n"
    for name, (tape, model) in seen.items():
        pages = [sum(share * 2 ** max(n - 1, 0) for n, share in enumerate(one.rpc_pages)) for one in (tape, model)]
        latency = [one.latency_mean_usec / 1000 for one in (tape, model)]
        text += (
            f"| {name} | {pages[0]:.0f}, {pages[1]:.0f}, {pages[1] / pages[0]:.2f} "
            f"| {latency[0]:.0f}, {latency[1]:.0f}, {latency[1] / latency[0]:.2f} "
            f"| {tapes.distance(tape.rpc_pages, model.rpc_pages):.2f} "
            f"| {tapes.distance(tape.latency_usec, model.latency_usec):.2f} |\n"
        )
    return text


if __name__ == "__main__":
    main()
