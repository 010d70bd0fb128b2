"""Pruning of a large journal: the time for which each portion holds the lock, and the duration of the first start.

    .venv/bin/python -m bench.journal --acts 10000000 --folder /var/tmp
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import time
from pathlib import Path

from lustre.layout.model import Component, Layout
from lustre.layout.yaml import to_yaml
from tierd.act.journal import Journal

DAY = 86400.0
NOW = 2_000_000_000.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acts", type=int, default=1_000_000)
    parser.add_argument("--old", type=float, default=0.5, help="share of acts older than the retention")
    parser.add_argument("--portions", type=int, default=2000)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    chosen = parser.parse_args()
    path = chosen.folder / "journal-bench.sqlite"
    if not path.exists():
        fill(path, chosen.acts, chosen.old)
    begun = time.perf_counter()
    journal = Journal(path)
    print(f"opened in {time.perf_counter() - begun:.2f} s, {journal.size_bytes() / 1e9:.2f} GB")
    for name, call in (("unfinished acts", journal.unfinished),
                       ("default layouts in force", journal.judgements.default_layouts_in_force)):
        begun = time.perf_counter()
        call()
        print(f"{name}: {1000 * (time.perf_counter() - begun):.1f} ms")
    held = []
    for _ in range(chosen.portions):
        begun = time.perf_counter()
        journal.retention.step(NOW, 365 * DAY)
        held.append(1000 * (time.perf_counter() - begun))
    held.sort()
    print(f"{len(held)} portions: median {statistics.median(held):.1f} ms, 99% {held[int(0.99 * len(held))]:.1f} ms, "
          f"longest {held[-1]:.1f} ms; {journal.size_bytes() / 1e9:.2f} GB")
    journal.close()


def fill(path: Path, acts: int, old: float) -> None:
    """Write acts at even intervals over two years: a hundred per finding, one of them a default layout in force."""
    Journal(path).close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous=OFF")
    before = to_yaml(Layout((Component(pool="hdd", stripe_count=2, stripe_size=4 << 20),), composite=False))
    after = to_yaml(Layout((Component(0, 1 << 20, "flash"), Component(1 << 20, None, "hdd"))))
    begin, step = NOW - 365 * DAY - 365 * DAY * old / max(1 - old, 1e-9), 365 * DAY / max(1 - old, 1e-9) / acts
    db.execute("BEGIN")
    for finding in range(1, acts // 100 + 1):
        at = begin + 100 * finding * step
        db.execute("INSERT INTO findings VALUES (?, ?, 'noisy-neighbour', 'mdt_small.1234', 'ior.77', 'a sentence', "
                   "'{}', '[]', '[\"/proj/a\"]', '')", (finding, at))
        db.executemany(
            "INSERT INTO actions (finding, kind, place, layout_before, layout_after, size_bytes, reason, dry_run, "
            "intended_at, ended_at, outcome, detail, fid) VALUES (?, ?, ?, ?, ?, 100000, 'because', 0, ?, ?, 'done', "
            "'', ?)",
            [(finding, "migrate" if n else "set-default-layout", b"/proj/job%d/file%d" % (finding, n), before, after,
              at + n * step, at + n * step + 1, f"0x200000{finding % 4096:03x}:0x{finding * 100 + n:x}:0x0")
             for n in range(100)])
        if finding % 1000 == 0:
            db.execute("COMMIT")
            db.execute("BEGIN")
    db.execute("COMMIT")
    db.close()


if __name__ == "__main__":
    main()
