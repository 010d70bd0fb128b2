"""``python -m dashboards`` writes the JSON."""

from __future__ import annotations

import json
from pathlib import Path

from dashboards.boards import BOARDS
from dashboards.dashboard import Dashboard

FOLDER = Path(__file__).parent / "json"


def text(board: Dashboard) -> str:
    return json.dumps(board.json(), indent=1, ensure_ascii=False) + "\n"


def path(board: Dashboard) -> Path:
    return FOLDER / f"{board.json()['uid']}.json"


if __name__ == "__main__":
    for each in BOARDS:
        path(each).write_text(text(each), encoding="utf-8")
