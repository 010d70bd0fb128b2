"""The runbooks of the alerts as pages: an alert's ``runbook_url`` opens them in a browser.

They need nothing of the daemon but its web server, so they open also while no cycle ends.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from markdown_it import MarkdownIt

FOLDERS = ("runbooks", "docs/runbooks")
"""Below the folder of all rooms: installed, and in a checkout."""
_NAME = re.compile(r"/runbooks/([A-Za-z]+)(\.md)?")
_LINK = re.compile(r"\[([^\]]+)\]\((?![A-Za-z]+\.md\))[^)]*\)")
"""Links to anything but another runbook: no such page is served."""


def runbook(path: str) -> tuple[str, str] | None:
    """Title and HTML of ``/runbooks/TierdDown``, or of ``/runbooks/``, which lists all; None for any other path."""
    named = _NAME.fullmatch(path)
    name = "README" if path == "/runbooks/" else named[1] if named else ""
    text = _text(name)
    if text is None:
        return None
    return "Runbooks" if name == "README" else name, MarkdownIt("commonmark", {"html": False}).render(text)


@lru_cache(maxsize=256)
def _text(name: str) -> str | None:
    rooms = Path(__file__).parents[2]
    found = next((file for folder in FOLDERS if (file := rooms / folder / f"{name}.md").is_file()), None)
    return None if found is None else _LINK.sub(r"\1", found.read_text(encoding="utf-8"))
