"""The import rules of docs/architecture.md, read with ast; and tierd without what can be taken away."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.without import TIERD
from tierd.act.claim import Claim, FilesystemClaim
from tierd.act.guard import ActGuard, JobCheck, SiteGuard
from tierd.daemon.observe import JobWork
from tierd.extensions import COMMANDS as EXTENSIONS
from tierd.integrations.registry import COMMANDS
from tierd.policies.registry import ELSEWHERE, policies

ROOT = Path(__file__).parent.parent
PACKAGES = ("lustre", "httpserver", "exporter", "tierd", "simulator")
PURE = ("os", "io", "time", "subprocess", "logging", "socket", "threading", "pathlib", "urllib", "sqlite3")

WORLD = ("lustre.parameters", "lustre.filesystem", "tierd.sense", "tierd.act")

FRONT = ("tierd.daemon", "tierd.cli", "tierd.simulation")
"""Rooms that wire the others together: the daemon, its command line and its simulation."""

FORBIDDEN: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("lustre", ("exporter", "tierd", "simulator", "prometheus_client")),
    ("lustre.formats", ("os", "io", "time", "subprocess", "logging", "socket", "pathlib", "lustre.parameters")),
    ("httpserver", ("lustre", "exporter", "tierd", "simulator")),
    ("exporter", ("tierd", "simulator", "subprocess", "ctypes")),
    ("tierd", ("exporter",)),
    ("simulator", ("exporter", "tierd")),
    ("tierd.config", ("tierd.act", "tierd.sense", "tierd.cluster", *FRONT)),
    ("tierd.sense", FRONT),
    *((f"tierd.integrations.{name}", ("tierd.act", "tierd.cluster", *FRONT[2:])) for name in COMMANDS),
    ("tierd.act", (*FRONT, "tierd.cluster")),
    ("tierd.cluster", FRONT[1:]),
    ("tierd.daemon", FRONT[1:]),
    ("tierd.detect", (*PURE, *WORLD, "tierd.decide")),
    ("tierd.decide", (*PURE, *WORLD, "tierd.detect")),
    *((name, (*PURE, *WORLD, *FRONT, "tierd.config", "tierd.cluster")) for name in ("tierd.policies", *ELSEWHERE)),
    ("tierd.mirrors", (*FRONT, "tierd.cluster")),
)
"""Package, and what nothing in it may import."""

ONLY: dict[str, tuple[str, ...]] = {
    "ctypes": ("lustre.llapi", "tierd.daemon.control"),
    "subprocess": ("tierd.act.movers.lfs", "tierd.brake.command", "tierd.integrations.slurm.source"),
    "simulator": ("simulator", "tierd.simulation", "tierd.cli"),
    "pyinotify": ("tierd.sense.watched",),
    "yaml": ("httpserver.yaml_document", "tierd.sense.discovery"),
    "pymysql": ("tierd.integrations.robinhood.source",),
    "numpy": ("tierd.arrays", "tierd.detect", "tierd.engine", "tierd.loads", "tierd.rates", "tierd.sense",
              "tierd.whatif"),
    "urllib3": ("tierd.sense.http_client",),
    "msgspec": ("tierd.daemon.answers", "tierd.sense.changelogs.tallies", "tierd.sense.prometheus", "tierd.structs"),
    "nats": ("tierd.cluster.connection",),
    "bcrypt": ("httpserver.basic_auth",),
    "ssl": ("httpserver.tls", "httpserver.server", "tierd.sense.http_client", "tierd.cluster.connection"),
    "isal": ("exporter.exposition",),
    "jinja2": ("tierd.daemon.page",),
    "markupsafe": ("tierd.daemon.page",),
    "time": ("tierd.clock", "exporter.clock", "httpserver.bodies", "httpserver.connections", "simulator.realtime"),
    "prometheus_client": (
        "exporter.app", "exporter.exposition", "exporter.self_metrics", "httpserver.metrics",
        "tierd.bill", "tierd.brake", "tierd.cluster.standing_by", "tierd.daemon", "tierd.daemon.web",
        "tierd.extensions", "tierd.integrations",
    ),
}
"""Module, and the packages that alone may import it."""


@cache
def modules() -> list[tuple[str, str]]:
    """Names and texts."""
    found = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return [(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"),
             path.read_text(encoding="utf-8")) for path in found]


@cache
def import_statements(text: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """The imports of a module, also inside functions. Several rules read the same modules."""
    return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom))


def imports(text: str) -> set[str]:
    found: set[str] = set()
    for node in import_statements(text):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, "relative import; write imports in full"
            assert node.module is not None
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def under(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def violations(name: str, imported: set[str]) -> list[str]:
    """What ``name`` imports and may not."""
    broken = [f"{name} imports {i}, forbidden below {package}"
              for package, bad in FORBIDDEN if under(name, package)
              for i in sorted(imported) for b in bad if under(i, b)]
    broken += [f"{name} imports {i}, which only {', '.join(allowed)} may"
               for module, allowed in ONLY.items() for i in sorted(imported)
               if under(i, module) and not any(under(name, a) for a in allowed)]
    return broken


def test_imports_stay_in_their_room() -> None:
    assert [broken for name, text in modules() for broken in violations(name, imports(text))] == []


def test_lustre_needs_nothing_but_the_standard_library() -> None:
    known = set(sys.stdlib_module_names) | {"lustre"}
    for name, text in modules():
        if under(name, "lustre"):
            assert {i.split(".")[0] for i in imports(text)} <= known, name


def circle(importing: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other, directly or through others; the first stands at both ends."""
    try:
        TopologicalSorter(importing).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def importing(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """For each module the modules it imports, also inside functions and below ``if TYPE_CHECKING``.

    A package that is named only on the way to one of its modules does not count.
    """
    found: dict[str, set[str]] = {}
    for name, text in sources.items():
        named: set[str] = set()
        for node in import_statements(text):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif node.module is not None:
                submodules = (f"{node.module}.{alias.name}" for alias in node.names)
                named |= {submodule if submodule in sources else node.module for submodule in submodules}
        found[name] = named & sources.keys()
    return found


def test_no_room_has_a_circle() -> None:
    assert circle(importing(dict(modules()))) == []


def test_a_circular_import_is_found() -> None:
    guarded = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from room.b import B\n"
    late = "def work():\n    from room import a\n"
    sources = {"room": "", "room.a": guarded, "room.b": late, "room.c": "import room.a\n"}
    assert set(circle(importing(sources))) == {"room.a", "room.b"}


POLICY_INTERFACE = tuple(f"tierd.policies.{name}" for name in ("guarded", "protocol", "registry", "runner"))
"""What others may import of the policies."""


def docstrings(nodes: Iterable[ast.AST]) -> set[int]:
    """Strings that are statements: they explain, and decide nothing."""
    return {id(node.value) for node in nodes if isinstance(node, ast.Expr)}


def policy_words(name: str, text: str) -> list[str]:
    """Kinds of findings and classes of evidence that a module names, and policies that it imports."""
    nodes = list(ast.walk(ast.parse(text)))
    said = docstrings(nodes)
    kinds = "|".join(kind for kind in policies() if "-" in kind)
    found = [f"{name}:{node.lineno} names {node.value}" for node in nodes
             if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
             and (node.value in policies() or re.search(rf"(?<![\w-])({kinds})(?![\w-])", node.value))]
    found += [f"{name}:{getattr(node, 'lineno', 0)} names {word}" for node in nodes
              if (word := {ast.Name: "id", ast.Attribute: "attr", ast.alias: "name"}.get(type(node), ""))
              and (word := str(getattr(node, word))) in EVIDENCE]
    return found + [f"{name} imports {each}" for each in imports(text)
                    if under(each, "tierd.policies") and each != "tierd.policies"
                    and not any(under(each, allowed) for allowed in POLICY_INTERFACE)]


EVIDENCE = {node.name for path in (ROOT / "tierd" / "policies").glob("*.py")
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ClassDef) and node.name.endswith("Evidence")}
OTHER_NAMES = {
    "tierd.audit.checks": "read-ahead and Omni-Path, of which its checks are",
    "tierd.cli.tierctl": "a scenario of the simulator",
}
"""Modules in which the word of a kind is the name of something else."""


def test_nothing_outside_a_policy_names_its_kind_or_its_evidence() -> None:
    found = [words for name, text in modules() if under(name, "tierd")
             and name not in (*OTHER_NAMES, *POLICY_INTERFACE, *ELSEWHERE)
             and not (under(name, "tierd.policies") and name != "tierd.policies")
             for words in policy_words(name, text)]
    assert found == []


def test_a_policy_imports_no_other_policy() -> None:
    for name, text in modules():
        if under(name, "tierd.policies") and name not in POLICY_INTERFACE:
            others = {each for each in imports(text) if under(each, "tierd.policies")} - {"tierd.policies"}
            assert all(under(each, "tierd.policies.protocol") for each in others), name


INTEGRATION_WORDS = {
    "tierd.advised": "the title of a paper",
    "tierd.arrays": "the form of job ids",
    "tierd.audit.checks": "the title of a paper, and an environment variable of jobs",
    "tierd.cli.submit": "a program that calls tierctl",
    "tierd.cli.tierctl": "a program that calls tierctl",
    "tierd.integrations.registry": "",
    "tierd.sense.parameters": "an environment variable of jobs",
}
"""Modules in which the word of an integration is the name of something else."""


def integration_words(name: str, text: str) -> list[str]:
    """Integrations that a module names in code or in a sentence, or imports. The paths of Lustre's own parts may be."""
    nodes = list(ast.walk(ast.parse(text)))
    said = docstrings(nodes)
    found = [f"{name}:{node.lineno} names {word}" for node in nodes
             if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
             for word in COMMANDS if word in node.value.lower()]
    found += [f"{name}:{getattr(node, 'lineno', 0)} names {word}" for node in nodes
              if (field := {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.keyword: "arg"}.get(type(node)))
              for word in COMMANDS if word.replace("_", "") in str(getattr(node, field)).replace("_", "").lower()]
    return found + [f"{name} imports {each}" for each in imports(text) for word in COMMANDS
                    if under(each, f"tierd.integrations.{word}")]


def test_nothing_outside_an_integration_names_it() -> None:
    assert [words for name, text in modules() if under(name, "tierd") and name not in INTEGRATION_WORDS
            and not any(under(name, f"tierd.integrations.{each}") for each in COMMANDS)
            for words in integration_words(name, text)] == []


POSITIONAL_MAX, INIT_LINES_MAX = 5, 40
"""Arguments without a name, and lines of a constructor, which are one screen."""
SPREAD = {"pack", "zip", "ask", "submit", "_named", "_query", "Entry"}
"""Functions of any number of arguments, where the place is the meaning, and the row of a table."""
ROOMS_WITHOUT_RULE = ("exporter", "httpserver", "tierd.policies", "tierd.daemon.judging")
"""Rooms whose calls still have more."""


def too_wide(name: str, text: str) -> list[str]:
    """Calls with more than five positional arguments, and constructors longer than a screen."""
    nodes = list(ast.walk(ast.parse(text)))
    called = [(node, ast.unparse(node.func)) for node in nodes if isinstance(node, ast.Call)
              and sum(not isinstance(each, ast.Starred) for each in node.args) > POSITIONAL_MAX]
    found = [f"{name}:{node.lineno} {what} has {len(node.args)} arguments without a name" for node, what in called
             if what.rpartition(".")[2] not in SPREAD]
    return found + [f"{name}:{node.lineno} has an __init__ longer than a screen" for node in nodes
                    if isinstance(node, ast.FunctionDef) and node.name == "__init__" and node.end_lineno is not None
                    and node.end_lineno - node.lineno >= INIT_LINES_MAX]


def test_what_a_part_needs_has_a_name() -> None:
    assert [wide for name, text in modules() if not any(under(name, room) for room in ROOMS_WITHOUT_RULE)
            for wide in too_wide(name, text)] == []


def own_logging(name: str, text: str) -> list[str]:
    """Loggers of other names than that of the package, and functions that get one passed in."""
    package = ".".join(name.split(".")[:2])
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "logging.getLogger":
            (of,) = node.args
            if not isinstance(of, ast.Constant) or of.value != package:
                found.append(f"{name}:{node.lineno} logs as {ast.unparse(of)}, not {package}")
        if isinstance(node, ast.arg) and node.arg in {"say", "log", "warn"}:
            found.append(f"{name}:{node.lineno} gets {node.arg}")
    return found


def test_each_package_of_tierd_has_one_logger() -> None:
    assert [wrong for name, text in modules() if under(name, "tierd") and name != "tierd.logs"
            for wrong in own_logging(name, text)] == []


@pytest.mark.parametrize(("rule", "broken", "kept"), [
    (lambda imported: violations("tierd.detect.x", {imported}), ("os", "ctypes", "tierd.act.claim"), "lustre.fid"),
    (lambda text: policy_words("tierd.x", text), (
        'if finding.kind == "cold-on-flash": pass', "from tierd.policies.imbalance import FillEvidence",
        "isinstance(finding.evidence, model.FillEvidence)", "from tierd.policies import statahead_waste",
        "say('not for rpc-size')"), "from tierd.policies.registry import policy_for\n'cold-on-flash'\n'my-striping'"),
    (lambda text: integration_words("tierd.x", text), (
        "from tierd.integrations.slurm.source import SlurmJobs", "settings.sense.powerflex", "f(robinhood=1)",
        "say('set [sense.slurm]')", "def f(access_logs): pass"),
     '"""Slurm and others."""\nfrom tierd.integrations.registry import started'),
    (lambda text: too_wide("tierd.x", text), (
        "Gate(1, 2, 3, 4, 5, 6)", "def __init__(self):\n" + "    a = 1\n" * INIT_LINES_MAX),
     "Gate(1, 2, 3, 4, 5, six=6)\nzip(1, 2, 3, 4, 5, 6)"),
    (lambda text: own_logging("tierd.act.x", text), ('logging.getLogger("tierd")', "def move(self, say): pass"), ""),
], ids=["imports", "policies", "integrations", "names", "loggers"])
def test_a_rule_can_fail(rule: Callable[[str], list[str]], broken: tuple[str, ...], kept: str) -> None:
    assert all(map(rule, broken))
    assert rule(kept) == []


def test_no_possessive_groups() -> None:
    """Python before 3.11.5 (Debian 12 has 3.11.2) matches ``(?:...)++`` wrongly where the group can backtrack."""
    found = [f"{name}: {line.strip()}" for name, text in modules()
             for line in text.splitlines() if re.search(r"\)[*+?]\+", line)]
    assert found == []


def test_indexes_are_sorted_stably() -> None:
    """The other sort of indexes is wrong on emulated processors (:func:`tierd.loads.distinct`)."""
    found = [f"{name}: {line.strip()}" for name, text in modules() for line in text.splitlines()
             if ("argsort(" in line and 'kind="stable"' not in line)
             or ("return_inverse" in line and "return_index" not in line)]
    assert found == []


@pytest.mark.parametrize(("real", "permissive"), [(SiteGuard, ActGuard), (JobWork, JobCheck), (Claim, FilesystemClaim)])
def test_no_check_of_an_act_is_left_to_a_base_that_permits_everything(real: type, permissive: type) -> None:
    """As a method with a wrong name would be."""
    assert {name for name in vars(permissive) if not name.startswith("_")} <= vars(real).keys()


INTERFACE = {"__init__", "guarded", "protocol", "registry", "runner"}
NAMES = ["tierd.cluster", "tierd.mirrors", *EXTENSIONS,
         *(f"tierd.integrations.{name}" for name in COMMANDS), *sorted(
    f"tierd.policies.{path.stem}" for path in (TIERD / "policies").glob("*.py") if path.stem not in INTERFACE)]


GROUPS = [",".join(name for number, name in enumerate(NAMES) if number >> bit & 1 == value)
          for bit in range((len(NAMES) - 1).bit_length()) for value in (0, 1)]
"""Each name is in a group, and for each two names there is a group with the first one and without the second one."""


@pytest.mark.parametrize("half", [0, 1])
def test_tierd_works_without_any_one_of_them(half: int) -> None:
    """Taken away in groups: whatever of the rest, or of another group, needs one of them fails."""
    done = subprocess.run([sys.executable, "-m", "tests.without", *GROUPS[half::2]], cwd=ROOT, text=True,
                          capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
