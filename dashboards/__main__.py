"""``python -m dashboards`` writes the JSON. With ``--check`` it only reports files that differ."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from dashboards.boards import BOARDS
from dashboards.dashboard import Dashboard

FOLDER = Path(__file__).parent / "json"


def text(board: Dashboard) -> str:
    return json.dumps(board.json(), indent=1, ensure_ascii=False) + "\n"


def path(board: Dashboard, folder: Path = FOLDER) -> Path:
    return folder / f"{board.json()['uid']}.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the files. The exit status of a check is 1 if files differ."""
    parser = argparse.ArgumentParser(prog="python -m dashboards", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file differs")
    check = parser.parse_args(arguments).check
    FOLDER.mkdir(exist_ok=True)
    stale = [b for b in BOARDS if not path(b).exists() or path(b).read_text(encoding="utf-8") != text(b)]
    for board in stale:
        if not check:
            path(board).write_text(text(board), encoding="utf-8")
        print(f"{path(board).name}: {'differs' if check else 'written'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
