"""Who may import what. The rules are those of docs/architecture.md; this test reads every module with ast."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("lustre", "exporter", "tierd", "simulator")
PURE = ("os", "io", "time", "subprocess", "logging", "socket", "threading", "pathlib", "urllib", "sqlite3")

WORLD = ("lustre.parameters", "lustre.filesystem", "tierd.sense", "tierd.act")

FRONT = ("tierd.daemon", "tierd.cli", "tierd.simulation")
"""What is put together of the other packages: the cycle, and what stands around it."""

FORBIDDEN: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("lustre", ("exporter", "tierd", "simulator", "prometheus_client")),
    ("lustre.formats", ("os", "io", "time", "subprocess", "logging", "socket", "pathlib", "lustre.parameters")),
    ("exporter", ("tierd", "simulator", "subprocess", "ctypes")),
    ("tierd", ("exporter",)),
    ("simulator", ("exporter", "tierd")),
    ("tierd.config", ("tierd.act", "tierd.sense", *FRONT)),
    ("tierd.sense", FRONT),
    ("tierd.act", FRONT),
    ("tierd.daemon", FRONT[1:]),
    ("tierd.detect", (*PURE, *WORLD, "tierd.decide")),
    ("tierd.decide", (*PURE, *WORLD, "tierd.detect")),
)
"""Package, and what nothing in it may import."""

ONLY: dict[str, tuple[str, ...]] = {
    "ctypes": ("lustre.llapi", "tierd.daemon.peers"),
    "subprocess": ("tierd.act.movers.lfs", "tierd.demo"),
    "simulator": ("simulator", "tierd.demo", "tierd.simulation", "tierd.cli"),
    "pyinotify": ("tierd.inotify",),
    "yaml": ("httpserver.yaml_document", "tierd.sense.discovery"),
    "dns": ("tierd.sense.discovery",),
    "pymysql": ("tierd.sense.robinhood",),
    "bcrypt": ("httpserver.basic_auth",),
    "ssl": ("httpserver.tls", "httpserver.server", "tierd.sense.http_client"),
    "isal": ("exporter.exposition",),
    "time": ("tierd.clock", "exporter.clock", "simulator.realtime"),
    "prometheus_client": (
        "exporter.app", "exporter.exposition", "exporter.self_metrics", "httpserver.server",
        "tierd.daemon", "tierd.daemon.web",
    ),
}
"""Module, and the packages that alone may import it."""


def modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__"), path


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; this house writes imports in full"
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
    assert [broken for name, path in modules() for broken in violations(name, imports(path))] == []


def test_lustre_needs_nothing_but_the_standard_library() -> None:
    known = set(sys.stdlib_module_names) | {"lustre"}
    for name, path in modules():
        if under(name, "lustre"):
            assert {i.split(".")[0] for i in imports(path)} <= known, name


def circles(importing: dict[str, set[str]]) -> list[list[str]]:
    """Modules that import each other, directly or through others; each circle once."""
    found: list[list[str]] = []
    done: set[str] = set()

    def follow(name: str, way: list[str]) -> None:
        if name in way:
            found.append([*way[way.index(name):], name])
        elif name not in done:
            for imported in sorted(importing[name]):
                follow(imported, [*way, name])
            done.add(name)

    for name in sorted(importing):
        follow(name, [])
    return found


def test_no_circles_in_lustre() -> None:
    named = {name: imports(path) for name, path in modules() if under(name, "lustre")}
    assert circles({name: (imported & named.keys()) - {"lustre"} for name, imported in named.items()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c", "a"]]


def test_no_circles_in_tierd() -> None:
    named = {name: imports(path) for name, path in modules() if under(name, "tierd")}
    assert circles({name: (imported & named.keys()) - {name} for name, imported in named.items()}) == []


def test_the_rules_can_fail() -> None:
    assert violations("exporter.x", {"tierd.model"})
    assert violations("tierd.detect.x", {"os"})
    assert violations("lustre.layout.model", {"ctypes"})
    assert not violations("tierd.sense.parameters", {"lustre.parameters", "os"})


def test_no_possessive_groups() -> None:
    """Python before 3.11.5 (Debian 12 has 3.11.2) matches ``(?:...)++`` wrongly where the group can backtrack."""
    found = [f"{name}: {line.strip()}" for name, path in modules()
             for line in path.read_text(encoding="utf-8").splitlines() if re.search(r"\)[*+?]\+", line)]
    assert found == []
