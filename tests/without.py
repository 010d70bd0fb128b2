"""Runs tierd without some modules or packages: as if they and their lines in the registries were deleted.

``python -m tests.without MODULE,MODULE…`` tries each group in a process of its own, and prints what fails. Nothing of
tierd that knows a policy may be imported before.
"""

import os
import re
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy  # noqa: F401 -- these modules are the same in all processes
import prometheus_client  # noqa: F401
import pydantic  # noqa: F401

import simulator.fluid.cluster
import simulator.settings
from simulator.jobs.large_files import StreamingWriter
from simulator.jobs.small_files import SmallFileWriter

TIERD = Path(__file__).parent.parent / "tierd"
POLICIES, INTEGRATIONS = "tierd.policies", "tierd.integrations"


class Registry(SourceFileLoader):
    """Loads a registry without the lines of some policies or integrations."""

    without = ""
    """Their names, as alternatives of a pattern."""

    def get_data(self, path: str) -> bytes:
        text = Path(path).read_text(encoding="utf-8")
        return re.sub(rf'^    "(tierd\.)?({self.without})(\.\w+)?"(: .*)?,\n', "", text, flags=re.MULTILINE).encode()

    def path_stats(self, path: str) -> dict[str, float]:
        raise OSError(f"{path} is not cached")


class Deleted(MetaPathFinder):
    """Finds no modules of these names or below them, and registries without them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if f"{fullname}.".startswith(tuple(f"{name}." for name in self.names)):
            raise ModuleNotFoundError(f"{fullname} was removed", name=fullname)
        if fullname not in (f"{POLICIES}.registry", f"{INTEGRATIONS}.registry", "tierd.__main__", "tierd.extensions",
                            "tierd.act.movers.engines"):
            return None
        spec = PathFinder.find_spec(fullname, path)
        assert spec.origin is not None
        loader = Registry(fullname, spec.origin)
        loader.without = "|".join(name.rpartition(".")[2] for name in self.names)
        spec.loader = loader
        return spec


def story(folder: Path) -> list[str]:
    """What tierd logs in the story of the demonstration, in virtual time."""
    demo, world = import_module("stack.demo"), import_module("tierd.simulation.world")
    jobs = (StreamingWriter(job_id="ior_stream.1002", path="/proj/flow/stream.dat"),
            SmallFileWriter(start_seconds=25.0))
    said: list[str] = []
    cluster = simulator.fluid.cluster.FluidCluster(simulator.settings.recorded_test_bed(), jobs)
    with import_module("tierd.logs").heard(said.append):
        world.wire(cluster, demo.quick(demo.load(None)), folder, False, None).run(until=70)
    return said


def run_without(names: Sequence[str]) -> None:
    """Import tierd, and run the story. Raises what fails."""
    sys.meta_path.insert(0, Deleted(names))
    known = import_module(f"{POLICIES}.registry").policies()
    for entrance in ("tierd.__main__", "tierd.daemon.process", "tierd.cli.tierctl"):
        import_module(entrance)
    import_module("tierd.__main__").parser()
    import_module("tierd.cli").modules_for("")
    assert sys.modules.keys().isdisjoint(names)
    with TemporaryDirectory() as folder:
        said = story(Path(folder))
    assert any("FOUND noisy-neighbour" in words for words in said) == ("noisy-neighbour" in known), said
    assert any("SET default layout" in words for words in said) == ("noisy-neighbour" in known), said


def main(groups: Sequence[str]) -> int:
    """Try each group, in turn. Returns the number of those that fail."""
    failed = 0
    for group in groups:
        child = os.fork()
        if child == 0:
            try:
                run_without(group.split(","))
            except Exception:  # noqa: BLE001 -- whatever fails is printed
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            print(f"tierd does not work without {group}", flush=True)
            failed += 1
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
