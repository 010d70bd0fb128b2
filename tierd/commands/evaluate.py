"""``tierctl evaluate``: how often is tierd right, over random workloads?"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tierd.commands.progress import bar
from tierd.config import ConfigurationError, Settings, load
from tierd.simulation.evaluate import as_json, as_text, evaluate_all


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line of ``tierctl evaluate``."""
    evaluate = commands.add_parser("evaluate", help="random workloads, with and without tierd: how often is it right?")
    evaluate.add_argument("--seeds", type=seeds, default=range(1, 51), metavar="A-B", help="scenarios (default: 1-50)")
    evaluate.add_argument("--policy", type=Path, metavar="FILE", help="settings of tierd, TOML")
    evaluate.add_argument("--json", action="store_true", help="figures for programs")
    evaluate.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N",
                          help="how many run at a time (default: one per processor)")
    evaluate.set_defaults(run=run)


def seeds(text: str) -> range:
    """A range of seeds.

    >>> list(seeds("3-5")), list(seeds("7"))
    ([3, 4, 5], [7])
    """
    first, _, last = text.partition("-")
    try:
        found = range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no range of seeds: write 1-50") from None
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is an empty range of seeds")
    return found


def run(chosen: argparse.Namespace) -> int:
    """Evaluate and tell."""
    try:
        policy = load(chosen.policy) if chosen.policy else Settings()
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    done = 0
    with bar("random workloads", len(chosen.seeds)) as progress:
        def one_more() -> None:
            nonlocal done
            done += 1
            progress(done)

        verdicts = evaluate_all(chosen.seeds, policy, chosen.processes, one_more)
    print(as_json(verdicts) if chosen.json else as_text(verdicts))
    return 0
