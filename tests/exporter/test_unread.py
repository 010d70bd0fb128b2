"""Every parameter of the recorded node is read, or the documentation gives the reason."""

import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from scripts.unread_parameters import UNREAD

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
