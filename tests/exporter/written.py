"""Nodes of older releases, written from Lustre's source: which there are, and how their files are unfolded."""

import re
from collections.abc import Iterator
from pathlib import Path

WRITTEN = Path(__file__).parent.parent / "captures" / "written-from-source"
RELEASES = ["2.12", "2.13", "2.14", "2.15", "2.16"]
ROLES = ["client", "oss", "oss-zfs", "mds", "router"]
NODES = [*((release, role) for release in RELEASES for role in ROLES), ("2.17", "seldom"), ("2.18", "quota")]
"""The last two have what the recorded node never showed, such as a recovery, rules of TBF, quotas of ranges of ids."""


def files_of(release: str, role: str) -> Iterator[tuple[str, str]]:
    """Path and text of each file of a node."""
    parts = re.split(r"^==> (\S+) <==\n", (WRITTEN / release / f"{role}.txt").read_text(), flags=re.MULTILINE)
    return zip(parts[1::2], parts[2::2], strict=True)


def unfold(release: str, role: str, root: Path) -> Path:
    """Put the node's files below ``root``, which then has ``proc`` and ``sys``."""
    (root / "proc").mkdir(parents=True)
    (root / "sys").mkdir()
    for path, text in files_of(release, role):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root
