"""``python -m bench.without_c``: the cost of running without the modules in C (decision 12).

Each measurement runs in its own process, alternately with and without the modules, so that a busy machine slows both
equally. The ratio compares the lowest times. The modules must be built: ``make .venv/stamp`` builds them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable

MODULES = ("lustre._files", "lustre.formats._texts", "exporter.jobs._lines")
ROUNDS = 3
Costs = dict[str, float]
"""Seconds of processor time by kind of work."""


def client() -> Costs:
    from bench import exporter  # noqa: PLC0415 -- after the modules in C are hidden

    return _scrapes(exporter.client(400, {}).costs)


def server() -> Costs:
    from bench import exporter  # noqa: PLC0415

    return _scrapes(exporter.server(1, 10000, {}).costs)


def limited() -> Costs:
    """A scrape of an object server with 10,000 jobs and ``--jobs.limit=50``."""
    from bench import exporter  # noqa: PLC0415

    return _scrapes(exporter.server(1, 10000, {"jobs_limit": 50}).costs)


def _scrapes(costs: Costs) -> Costs:
    return {f"{changed} changed": costs[changed] for changed in ("all", "few", "none")}


TASKS: dict[str, Callable[[], Costs]] = {
    "client, 400 OSTs": client, "server, 10,000 jobs": server, "server, 10,000 jobs, limit 50": limited,
}


def missing() -> bool:
    return all(name in sys.modules and sys.modules[name] is None for name in MODULES)


def _hidden() -> str:
    return f"import sys; sys.modules.update(dict.fromkeys({MODULES!r})); "


def measured(task: str, *, without: bool) -> Costs:
    """Measure a task in a fresh process with the environment of the unit files."""
    code = f"{_hidden() if without else ''}from bench.without_c import child; child({task!r})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                          env=os.environ | {"MALLOC_ARENA_MAX": "1"})
    costs: Costs = json.loads(done.stdout)
    return costs


def child(task: str) -> None:
    from exporter.jobs import lines  # noqa: PLC0415
    from lustre import parameters  # noqa: PLC0415
    from lustre.formats import compiled  # noqa: PLC0415

    built = compiled.AVAILABLE, lines.compiled is not None, parameters.read_many is not None
    if any(built) is missing() or any(built) is not all(built):
        sys.exit(f"the modules in C are not built: texts, job lines, files are {built}")
    print(json.dumps(TASKS[task]()))


def main() -> None:
    """Print each cost with and without the modules in C, and the ratio."""
    parser = argparse.ArgumentParser(prog="python -m bench.without_c", description=__doc__.partition("\n")[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"default: all of {'; '.join(TASKS)}")
    for task in parser.parse_args().tasks or TASKS:
        best: dict[bool, Costs] = {True: {}, False: {}}
        for number in range(2 * ROUNDS):
            without = bool(number % 2)
            for what, seconds in measured(task, without=without).items():
                best[without][what] = min(seconds, best[without].get(what, seconds))
        for what, seconds in best[False].items():
            alone = best[True][what]
            print(f"{task + ', ' + what:<45}{seconds * 1e3:>9.1f} ms, Python alone {alone * 1e3:>9.1f} ms,"
                  f" {alone / seconds:>5.2f} x", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
