"""``python -m bench.without_c``: the cost of running without the modules in C (decision 12).

Each measurement runs in its own process, alternately with and without the modules, so that a busy machine slows both
equally. The ratio compares the lowest times. The modules must be built: ``make .venv/stamp`` builds them.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

MODULES = ("lustre._files", "lustre.formats._texts", "exporter.jobs._lines")
ROUNDS = 3
TASKS: dict[str, tuple[Any, ...]] = {
    "client, 400 OSTs": ("client", 400, {}), "server, 10,000 jobs": ("server", 1, 10000, {}),
    "server, 10,000 jobs, limit 50": ("server", 1, 10000, {"jobs_limit": 50}),
}
"""A function of :mod:`bench.exporter` and its arguments."""


def costs(without: bool, function: str, *arguments: object) -> dict[str, float]:
    """Seconds of processor time by what has changed. Ends the process if only some modules are built."""
    if without:
        sys.modules.update(dict.fromkeys(MODULES))  # type: ignore[arg-type]  # absent for the imports below
    from bench import exporter  # noqa: PLC0415
    from exporter.jobs import lines  # noqa: PLC0415
    from lustre import parameters  # noqa: PLC0415
    from lustre.formats import compiled  # noqa: PLC0415

    built = compiled.AVAILABLE, lines.compiled is not None, parameters.read_many is not None
    if built != (not without,) * 3:
        sys.exit(f"the modules in C are not built: texts, job lines, files are {built}")
    found: dict[str, float] = getattr(exporter, function)(*arguments).costs
    return {changed: found[changed] for changed in ("all", "few", "none")}


def measured(task: str, *, without: bool) -> dict[str, float]:
    """Measure a task in a fresh process with the environment of the unit files."""
    os.environ["MALLOC_ARENA_MAX"] = "1"
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(costs, without, *TASKS[task]).result()


def main() -> None:
    """Print each cost with and without the modules in C, and the ratio."""
    for task in TASKS:
        rounds = [(measured(task, without=False), measured(task, without=True)) for _ in range(ROUNDS)]
        for changed in rounds[0][0]:
            seconds, alone = (min(of_both[which][changed] for of_both in rounds) for which in (0, 1))
            print(f"{task + f', {changed} changed':<45}{seconds * 1e3:>9.1f} ms, Python alone {alone * 1e3:>9.1f} ms,"
                  f" {alone / seconds:>5.2f} x", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
