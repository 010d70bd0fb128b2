"""``tierctl simulate``: a workload on a simulated cluster, with and without tierd."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from simulator.scenario import Scenario, library, names, parse
from tierd.commands.progress import bar
from tierd.config import ConfigurationError, Settings, load
from tierd.simulation import report
from tierd.simulation.run import run as run_variant
from tierd.simulation.tables import as_text
from tierd.simulation.variants import WITH_TIERD, variants
from tierd.text import quoted


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line of ``tierctl simulate``."""
    simulate = commands.add_parser("simulate", help="run a scenario on a simulated cluster, with and without tierd")
    simulate.add_argument("scenario", metavar="SCENARIO", help="a TOML file, or the name of one of the library")
    simulate.add_argument("--policy", type=Path, metavar="FILE", help="settings of tierd, TOML")
    simulate.add_argument("--no-policy", action="store_true", help="leave out the run with tierd")
    simulate.add_argument("--json", action="store_true", help="figures for programs")
    simulate.add_argument("--plot", type=Path, metavar="FILE", help="a picture, .png or .svg (needs matplotlib)")
    simulate.add_argument("--seed", type=int, default=1, help="of everything random (default: 1)")
    simulate.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Run all variants and tell."""
    try:
        scenario = named(chosen.scenario)
        policy = load(chosen.policy) if chosen.policy else Settings()
        draw = plotter(chosen.plot) if chosen.plot else None
        if chosen.plot:
            check_writable(chosen.plot)
    except (ConfigurationError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{quoted(str(error.filename))}: {error.strerror}", file=sys.stderr)
        return 1
    wanted = [(name, case) for name, case in variants(scenario) if name != WITH_TIERD or not chosen.no_policy]
    outcomes = {}
    with bar(scenario.title, scenario.seconds * len(wanted)) as progress:
        for number, (name, case) in enumerate(wanted):
            before = number * scenario.seconds
            outcomes[name] = run_variant(case.build(chosen.seed), case.jobs, scenario.seconds, (),
                                         policy if name == WITH_TIERD else None, partial(advanced, progress, before))
    changes = [event.at for event in scenario.events]
    comparison = report.compare(scenario.title, scenario.jobs, outcomes, scenario.seconds, changes)
    print(json.dumps(report.as_data(comparison), indent=1) if chosen.json else as_text(comparison))
    if draw is not None:
        try:
            draw(comparison, chosen.plot)
        except OSError as error:
            print(f"{quoted(str(chosen.plot))}: {error.strerror}", file=sys.stderr)
            return 1
    return 0


def check_writable(path: Path) -> None:
    """Whether a file can be written there, before a run of minutes. Raises OSError."""
    try:
        if path.exists():
            path.open("ab").close()
        else:
            tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(path)) from error


def plotter(path: Path) -> Callable[[report.Comparison, Path], None]:
    """What draws the picture. Raises ValueError when it could not, before anything has run."""
    if path.suffix not in {".png", ".svg"}:
        raise ValueError(f"{quoted(str(path))}: a picture is .png or .svg")
    try:
        from tierd.simulation.plot import plot  # noqa: PLC0415 -- matplotlib is an extra, and slow to load
    except ModuleNotFoundError as error:
        raise ValueError(f"--plot needs {error.name}: pip install 'lustre-tierd[plots]'") from error
    return plot


def advanced(progress: Callable[[float], None], before: float, now: float) -> None:
    """Progress over several runs."""
    progress(before + now)


def named(name: str) -> Scenario:
    """A scenario of the library by its name, or a file. Raises OSError or ValueError."""
    path = Path(name)
    if path.suffix == ".toml" or path.exists():
        try:
            return parse(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{quoted(str(path))}: {error}") from error
    if name.replace("_", "-") not in names():
        raise ValueError(f"no scenario {name!r}: neither a file, nor one of the library: {', '.join(names())}")
    return library(name)
