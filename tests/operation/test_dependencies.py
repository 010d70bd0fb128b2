"""What an installation needs: prometheus_client for the exporter, the packages of its extra for tierd."""

import configparser
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest

from tests.conftest import Unpack
from tierd import dependencies

ROOT = Path(__file__).parents[2]
OWN = ("lustre", "httpserver", "exporter", "tierd", "simulator")
OF_A_CLUSTER = {"tierd.cluster"}
"""Packages and modules that need the extra ``cluster``. A tierd that works alone imports none of them."""

ONLY = """
import importlib, pkgutil, sys

class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        known = top in sys.stdlib_module_names or top.startswith("_sysconfigdata")
        if not known and top not in ALLOWED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

ALLOWED = set(sys.argv[1].split(","))
sys.meta_path.insert(0, Only())
"""
IMPORT_ALL = ONLY + """
for package in sys.argv[2].split(","):
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            print(found.name, error.name)
"""
EXPORTER = ONLY + "from exporter.__main__ import main; sys.exit(main(sys.argv[2:]))"
PROGRAM = ONLY + "module = importlib.import_module(sys.argv[2]); sys.exit(module.main(sys.argv[3:]))"


def required(section: str, option: str) -> list[str]:
    """Names of the distributions that setup.cfg lists."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    return [re.split(r"[^\w.-]", line)[0] for line in settings[section][option].split("\n") if line]


def importable(names: Iterable[str]) -> set[str]:
    """The packages and modules that distributions bring, with all that these need."""
    wanted, found = list(names), set[str]()
    while wanted:
        name = wanted.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            wanted += [re.split(r"[^\w.-]", need)[0] for need in distribution(name).requires or ()
                       if "extra ==" not in need and "platform_python_implementation" not in need]
    return {top for top, names in packages_distributions().items()
            if found & {name.lower().replace("_", "-") for name in names}}


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program that can import only the standard library and the packages that its first argument names."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def packages(*names: str) -> list[str]:
    return [name for name in names if (ROOT / name).is_dir()]


def test_pip_install_brings_prometheus_client_and_nothing_else() -> None:
    assert required("options", "install_requires") == ["prometheus_client"]


def test_the_exporter_is_imported_with_prometheus_client_alone() -> None:
    ours = packages("lustre", "httpserver", "exporter")
    imported = run(IMPORT_ALL, ",".join([*ours, "prometheus_client"]), ",".join(ours))
    assert (imported.returncode, imported.stdout) == (0, ""), imported.stdout + imported.stderr


def test_the_exporter_runs_with_prometheus_client_alone(capture: Unpack) -> None:
    tree = capture("2.17.57/tree-idle")
    allowed = ",".join([*packages("lustre", "httpserver", "exporter"), "prometheus_client"])
    shown = run(EXPORTER, allowed, "--once", f"--path.procfs={tree / 'proc'}", f"--path.sysfs={tree / 'sys'}")
    assert shown.returncode == 0, shown.stderr
    assert "# TYPE lustre_llite_operations_total counter\n" in shown.stdout


def test_tierd_is_imported_with_its_extra_alone() -> None:
    allowed = importable([*required("options", "install_requires"), *required("options.extras_require", "tierd")])
    imported = run(IMPORT_ALL, ",".join([*packages(*OWN), *allowed]), "tierd,simulator")
    assert imported.returncode == 0, imported.stderr
    missed = {line.split()[0]: line.split()[1] for line in imported.stdout.splitlines()}
    of_cluster = {name for name in missed if any(name == of or name.startswith(f"{of}.") for of in OF_A_CLUSTER)}
    assert {missed[name] for name in of_cluster} == {"nats"}
    assert missed.keys() == of_cluster, imported.stdout


def test_tierd_alone_starts_without_nats(tmp_path: Path) -> None:
    """It goes as far as the mount that is not there. A mover names the missing package."""
    allowed = ",".join([*packages(*OWN), *importable([*required("options", "install_requires"),
                                                      *required("options.extras_require", "tierd")])])
    config = tmp_path / "tierd.toml"
    config.write_text(f'[filesystem]\nmount = "{tmp_path}"\n[web]\nenabled = false\n')
    alone = run(PROGRAM, allowed, "tierd.__main__", "--config", str(config))
    assert alone.returncode == 1
    assert "not on a mounted Lustre file system" in alone.stderr
    mover = run(PROGRAM, allowed, "tierd.__main__", "mover", "--config", str(config))
    assert mover.returncode == dependencies.NOT_INSTALLED
    assert mover.stderr == "tierd: nats is not installed. A cluster needs it: pip install '.[cluster]' in the source\n"


def test_the_packages_that_are_missed_are_those_of_the_extra() -> None:
    named = {name.removesuffix("-py").replace("-", "_").lower() for name in required("options.extras_require", "tierd")}
    assert named == dependencies.PACKAGES


@pytest.mark.parametrize(("module", "program", "arguments"), [
    ("tierd.__main__", "tierd", ["--config", "tierd.toml"]),
    ("tierd.__main__", "tierd", ["replay", "tests/tapes/noisy-create-1m"]),
    ("tierd.cli.tierctl", "tierctl", ["top"]),
    ("tierd.cli.tierctl", "tierctl", ["simulate", "noisy-neighbour"]),
    ("tierd.cli.tierctl", "tierctl", ["--help"]),
])
def test_a_program_without_the_extra_says_in_one_line_what_to_install(
        module: str, program: str, arguments: list[str]) -> None:
    ended = run(PROGRAM, ",".join([*packages(*OWN), "prometheus_client"]), module, *arguments)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert re.fullmatch(rf"{program}: \w+ is not installed\. .*: pip install '\.\[tierd\]' in the source\n",
                        ended.stderr)


def test_no_text_has_people_install_a_name_that_no_index_gives_us() -> None:
    """Somebody else could take it."""
    texts = [path for package in (*OWN, "docs", "packaging", "systemd", "scripts", "bench", "alerts")
             for path in (ROOT / package).rglob("*") if path.suffix in {".py", ".md", ".toml", ".sh"}]
    named = [str(path.relative_to(ROOT)) for path in [*texts, ROOT / "README.md"]
             if re.search(r"pip install '?lustre-tierd|lustre-tierd\[", path.read_text())]
    assert named == []


def test_a_module_missing_by_mistake_is_not_blamed_on_extras() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"tierd\.gone"):
        dependencies.report_missing("tierd", ModuleNotFoundError("No module named 'tierd.gone'", name="tierd.gone"))
