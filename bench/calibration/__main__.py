"""``python -m bench.calibration [--out DIR]``: run all comparisons, and write ``calibration.md``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.calibration import costs, markdown, papers, tapes


def main() -> None:
    """Run all comparisons, which takes some minutes."""
    parser = argparse.ArgumentParser(prog="python -m bench.calibration", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "docs")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    head = Path(__file__).with_name("report.md").read_text(encoding="utf-8")
    text = head.format(papers=markdown(papers.rows()), tapes=markdown(tapes.rows()), costs=markdown(costs.rows()))
    (chosen.out / "calibration.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
