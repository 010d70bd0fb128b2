"""Kills and stops of everything while files move, with any seed; then every file, limit and journal is checked.

    python -m bench.chaos [--files 3000] [--seeds 1 2 3]
    python -m bench.chaos --intents 1000000 [--seeds 1]

Two leaders, four movers and a NATS server are processes over one Lustre in memory. Every second or two one of them is
killed, or stands still for some seconds. At the end every file has its new layout and its content, none was exchanged
twice, no target was used by more movers than allowed, and the journal of the last leader has each move as done.

``--intents`` moves many files on a fake file system in one process, while movers die at random points and four leaders
replace each other. A million takes about an hour.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.tierd.cluster.broker import Broker
from tests.tierd.cluster.chaos import chaos
from tests.tierd.cluster.test_many_intents import DEATHS, run_intents

DEATHS_OF_MANY = 400.0
"""Deaths of movers, at most about ten times as many: each costs the time until its message is delivered again."""


def main() -> int:
    """Run each seed. Returns 1 if a check fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=3000, help="files of a run (default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="courses of events (default: 1 2 3)")
    parser.add_argument("--intents", type=int, help="move so many files on a fake file system instead")
    parser.add_argument("--verbose", action="store_true", help="print every kill and stop")
    chosen = parser.parse_args()
    failed = 0
    for seed in chosen.seeds:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            broker = Broker(Path(folder))
            try:
                if chosen.intents:
                    deaths = run_intents(broker, Path(folder), chosen.intents, seed,
                                         min(DEATHS, DEATHS_OF_MANY / chosen.intents))
                    words = f"{chosen.intents:,} intents, {deaths} movers died"
                else:
                    chaos(Path(folder), broker, chosen.files, seed, print if chosen.verbose else lambda _: None)
                    words = f"{chosen.files:,} files"
                print(f"seed {seed}: {words}: all is well, {time.monotonic() - begun:.0f} s", flush=True)
            except AssertionError as error:
                failed += 1
                print(f"seed {seed}: FAILED: {error}", flush=True)
            finally:
                broker.kill()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
