"""``tierctl simulate`` and ``tierctl evaluate``: run workloads on a simulated cluster, with and without tierd."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path

from simulator.scenarios.scenario import Scenario, ScenarioError, library, names, parse
from simulator.tables import Place, sentence
from tierd.cli.client import bar, positive, seconds
from tierd.config.files import nearest_line
from tierd.config.load import load
from tierd.daemon.process import error_text
from tierd.simulation.beds import DRAWN, BedKind
from tierd.simulation.comparison import WITH_TIERD, compare, comparison_data, comparison_text, plot, variants
from tierd.simulation.evaluate import Evaluated, Verdict, evaluate_all, summary_json, summary_text
from tierd.simulation.random_scenarios import GROUPS, HARD, PLACEMENT, USUAL
from tierd.simulation.run import orders_of
from tierd.simulation.run import run as run_variant
from tierd.structs import json_text
from tierd.text import quoted


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    simulate = commands.add_parser(
        "simulate", help="run a scenario on a simulated cluster, with and without tierd",
        description="Run a scenario on a simulated cluster, with and without tierd, and compare the throughput of its "
                    "jobs. Needs no daemon.")
    simulate.add_argument("scenario", metavar="SCENARIO", help="TOML file, or name of a scenario of the library")
    simulate.add_argument("--policy", type=Path, metavar="FILE",
                          help="configuration file of tierd (default: built-in defaults)")
    simulate.add_argument("--tierd-starts", type=seconds, default=0.0, metavar="SECONDS",
                          help="virtual time at which tierd starts (default: 0, before all jobs)")
    simulate.add_argument("--no-policy", action="store_true", help="skip the run with tierd")
    simulate.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the results as JSON")
    simulate.add_argument("--plot", type=Path, metavar="FILE",
                          help="write a plot to FILE, .png or .svg (needs matplotlib)")
    simulate.add_argument("--seed", type=int, default=1, help="seed of the random numbers (default: %(default)s)")
    simulate.set_defaults(run=run)
    add_evaluate(commands)


def run(chosen: argparse.Namespace) -> int:
    try:
        scenario = find_scenario(chosen.scenario)
        policy = load(chosen.policy)
        if chosen.plot:
            check_plot(chosen.plot)
    except (OSError, ValueError) as error:
        print(error_text(error) if isinstance(error, OSError) else error, file=sys.stderr)
        return 1
    wanted = [(name, case) for name, case in variants(scenario) if name != WITH_TIERD or not chosen.no_policy]
    outcomes = {}
    with bar(scenario.title, scenario.seconds * len(wanted)) as progress:
        for number, (name, case) in enumerate(wanted):
            outcomes[name] = run_variant(
                case.build(chosen.seed), case.jobs, scenario.seconds, (), policy if name == WITH_TIERD else None,
                progress=partial(lambda before, now: progress(before + now), number * scenario.seconds),
                tierd_starts=chosen.tierd_starts, orders=orders_of(scenario.events))
    comparison = compare(scenario.title, scenario.jobs, outcomes, scenario.seconds, chosen.tierd_starts)
    print(json_text(comparison_data(comparison), indent=1) if chosen.json else comparison_text(comparison))
    if chosen.plot:
        try:
            plot(comparison, chosen.plot)
        except OSError as error:
            print(error_text(error), file=sys.stderr)
            return 1
    return 0


def check_plot(path: Path) -> None:
    """Check before a run of minutes that a plot can be made. Raises ValueError."""
    if path.suffix not in {".png", ".svg"}:
        raise ValueError(f"{quoted(str(path))}: --plot writes .png or .svg")
    if find_spec("matplotlib") is None:
        raise ValueError("--plot needs matplotlib: pip install matplotlib")


def find_scenario(name: str) -> Scenario:
    """Load a scenario from a file, or from the library by its name. Raises OSError or ValueError."""
    path = Path(name)
    if path.suffix == ".toml" or path.exists():
        text = path.read_text(encoding="utf-8")
        try:
            return parse(text)
        except ScenarioError as error:
            mistakes = "; ".join(with_line(text, *each) for each in error.mistakes)
            raise ValueError(f"{quoted(str(path))}: scenario: {mistakes}") from error
        except ValueError as error:
            raise ValueError(f"{quoted(str(path))}: {error}") from error
    if name.replace("_", "-") not in names():
        raise ValueError(f"no scenario {name!r}: neither a file nor in the library: {', '.join(names())}")
    return library(name)


def with_line(text: str, place: Place, wrong: str) -> str:
    """A mistake in a scenario after the number of its line, where the line can be found."""
    first, second, *rest = (*place, "", "")
    # of several tables, nested ones too, the number follows the first name
    places = (place, (first, 0, second, *rest), (first, *rest[:1], second, *rest[1:]))
    line, found = max((nearest_line(text, each) for each in places), key=itemgetter(1))
    return f"line {line}: {sentence((place, wrong))}" if found else sentence((place, wrong))


def add_evaluate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    evaluate = commands.add_parser(
        "evaluate", help="measure how often tierd is right on random workloads",
        description="Measure how often tierd is right on random workloads of a simulated cluster. Needs no daemon.")
    evaluate.add_argument("--seeds", type=seed_range, default=range(1, 51), metavar="A-B",
                          help="seeds of the random workloads (default: 1-50)")
    evaluate.add_argument("--policy", type=Path, metavar="FILE",
                          help="configuration file of tierd (default: built-in defaults)")
    evaluate.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the results as JSON")
    evaluate.add_argument("--processes", type=positive, default=os.cpu_count() or 1, metavar="N",
                          help="number of parallel processes (default: one for each processor)")
    evaluate.add_argument("--cold", action="store_true",
                          help="start tierd after all jobs, so that it has seen no stream alone")
    evaluate.add_argument("--workload", action="append", type=workload_names, metavar="NAME", default=[],
                          help="draw this workload, or 'usual', 'hard' or 'placement' ones, or 'all': usual ones and, "
                               "for one seed in ten, a hard one; may be repeated (default: usual)")
    evaluate.add_argument("--bed", action="append", type=bed_kinds, metavar="KIND", default=[],
                          help=f"test bed: {', '.join(BedKind)}, or 'all' but the recorded one; may be repeated "
                               f"(default: {BedKind.RECORDED})")
    evaluate.set_defaults(run=run_evaluate)


def bed_kinds(text: str) -> tuple[BedKind, ...]:
    """Parse a kind of test bed, or ``all``."""
    if text == "all":
        return DRAWN
    try:
        return (BedKind(text),)
    except ValueError:
        raise argparse.ArgumentTypeError(f"no test bed {text!r}; known: all, {', '.join(BedKind)}") from None


def seed_range(text: str) -> range:
    """Parse a range of seeds.

    >>> list(seed_range("3-5")), list(seed_range("7"))
    ([3, 4, 5], [7])
    """
    first, _, last = text.partition("-")
    try:
        found = range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of seeds; example: 1-50") from None
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is an empty range of seeds")
    return found


def workload_names(text: str) -> frozenset[str]:
    """Parse the name of a workload or of a group of workloads.

    >>> sorted(workload_names("another_stream")), workload_names("usual") == USUAL
    (['another stream'], True)
    """
    name = text.replace("_", " ").replace("-", " ")
    if name == "all":
        return USUAL | HARD
    if name in GROUPS:
        return GROUPS[name]
    if name not in USUAL | HARD | PLACEMENT:
        known = ", ".join(["all", *GROUPS, *sorted(USUAL), *sorted(HARD), *sorted(PLACEMENT)])
        raise argparse.ArgumentTypeError(f"no workload {text!r}; known: {known}")
    return frozenset((name,))


def run_evaluate(chosen: argparse.Namespace) -> int:
    """Run all workloads and print the summary. After Ctrl-C, print that of the seeds that are complete."""
    try:
        policy = load(chosen.policy)
    except (OSError, ValueError) as error:
        print(error_text(error) if isinstance(error, OSError) else error, file=sys.stderr)
        return 1
    workloads = frozenset[str]().union(*(chosen.workload or [USUAL]))
    beds = tuple(dict.fromkeys(kind for kinds in chosen.bed or [(BedKind.RECORDED,)] for kind in kinds))
    seeds, verdicts, interrupted = chosen.seeds, list[Verdict](), False
    with (bar("random workloads", len(seeds) * len(beds)) as progress,
          closing(evaluate_all(seeds, policy, chosen.processes, chosen.cold, workloads, beds=beds)) as running):
        try:
            for verdict in running:
                verdicts.append(verdict)
                progress(len(verdicts))
        except KeyboardInterrupt:
            interrupted = True
    if verdicts:
        form = summary_json if chosen.json else summary_text
        print(form(Evaluated(f"{seeds[0]}-{verdicts[-1].seed}", chosen.cold, verdicts)))
    if interrupted:
        print(f"{len(verdicts)} of {len(seeds) * len(beds)} scenarios are complete", file=sys.stderr)
        raise KeyboardInterrupt
    return 0
