"""Names, units, help and reference of all that is collected, and the reasons of what is not."""

import re
import subprocess
import sys
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path

import pytest

from exporter.collectors import COLLECTORS
from scripts import metrics_reference
from scripts.unread_parameters import UNREAD

FAMILIES = [family for collector in COLLECTORS for family in collector.families]
KNOWN = {
    "fs", "mount", "target", "pool", "operation", "direction", "event", "mask", "pattern", "jobid", "state", "version",
    "nid", "service", "priority", "namespace", "nodemap", "mdt", "user", "id", "type", "size", "directory", "result",
    "resource", "kind", "parameter", "net", "pages", "flag", "phase", "setting",
    "problem", "policy", "by", "rule", "condition", "path", "rwid", "roid", "lqa",
}  # fmt: skip
PARAMETER = r"[a-z_]+(-\*)?(\.([A-Za-z_]+(-[a-z]+)?|\*))*"


def test_names_come_once() -> None:
    names = [family.name for collector in COLLECTORS for family in collector.families]
    assert len(names) == len(set(names))
    assert len({collector.name for collector in COLLECTORS}) == len(COLLECTORS)


@pytest.mark.parametrize("family", FAMILIES, ids=attrgetter("name"))
def test_a_family_follows_the_conventions(family) -> None:
    assert re.fullmatch(r"lustre_[a-z]+(_[a-z]+)*", family.name)
    assert (family.kind == "counter") == family.name.endswith("_total")
    base = family.name.removesuffix("_total")
    assert not re.search(r"_(count|sum|bucket|created)$", base)
    assert not base.endswith("_info") or (family.kind == "gauge" and family.help.startswith("Always 1, "))
    assert family.help[0].isupper()
    assert family.help.endswith(".")
    assert set(family.labels) <= KNOWN
    assert "fs" not in family.labels[1:]
    assert re.fullmatch(rf"{PARAMETER}(, {PARAMETER})*", family.source)
    assert re.fullmatch(r"2\.\d\d\+", family.versions)


def test_the_reference_is_up_to_date() -> None:
    written = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    assert written == metrics_reference.reference(), "run: python -m scripts.metrics_reference > docs/metrics.md"


def test_metrics_have_the_documented_labels(capture, exporter, samples) -> None:
    promised = {family.name: set(family.labels) for collector in COLLECTORS for family in collector.families}
    for name, labels in samples(exporter(capture("2.17.57/tree-load-1")).scrape()):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        family = name if name in promised else base
        assert {label for label, _ in labels} - {"le"} == promised[family], name


TOPS = {"sys/fs/lustre": "", "sys/kernel/debug/lustre": "", "proc/fs/lustre": "", "sys/kernel/debug/lnet": "lnet."}
OPENED = """
import sys
root, opened = sys.argv[1], []
sys.addaudithook(lambda event, of: opened.append(of[0]) if event == "open" and isinstance(of[0], str) else None)
from pathlib import Path
from tests.exporter.conftest import EVERY, Exporter
from exporter.collector import Settings
Exporter(Path(root), Settings(enabled=EVERY)).scrape()
print("\\n".join({path for path in opened if path.startswith(root)}))
"""


def parameter(top: str, path: str) -> str:
    """The name without what is particular to the node: devices, clients, directories of the management server."""
    parts = [re.sub(r"^(?:[a-z-]*?lustre-\S+|\d+@\w+)$", "*", part) for part in path.split("/")]
    return TOPS[top] + ".".join(parts)


def every_file(root: Path) -> dict[str, str]:
    """{path: parameter}; links to others are left out."""
    return {
        str(file.resolve()): parameter(top, str(file.relative_to(root / top)))
        for top in TOPS
        for file in (root / top).rglob("*")
        if file.is_file() and not file.is_symlink()
    }


@pytest.fixture(scope="module")
def shown(capture) -> dict[str, str]:
    return every_file(capture("2.17.57/tree-load-1"))


@pytest.fixture(scope="module")
def read(capture, shown) -> set[str]:
    command = [sys.executable, "-c", OPENED, str(capture("2.17.57/tree-load-1"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    places = {str(Path(path).resolve()) for path in done.stdout.splitlines()}
    return {shown[place] for place in places & set(shown)}


def test_unread_parameters_are_documented_with_a_reason(shown, read) -> None:
    left = set(shown.values()) - read
    assert len(left) > 300
    assert len(read) > 100
    patterns = [pattern for unread in UNREAD for pattern in unread.patterns]
    unnamed = sorted(name for name in left if not any(fnmatchcase(name, pattern) for pattern in patterns))
    assert "\n".join(unnamed) == ""


def test_every_reason_belongs_to_an_unread_parameter(capture, shown, read) -> None:
    root = capture("2.17.57/tree-load-1")
    links = {parameter(top, str(file.relative_to(root / top))) for top in TOPS for file in (root / top).glob("*")}
    left = (set(shown.values()) | links) - read
    patterns = [pattern for unread in UNREAD for pattern in unread.patterns]
    assert [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in left)] == []
