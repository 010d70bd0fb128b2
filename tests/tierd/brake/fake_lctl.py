"""``lctl set_param`` for the agent's process: changes a file of rules as the kernel would, for one CPT."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> int:
    text = sys.argv[2].partition("=")[2].removeprefix("reg ")
    path = Path(os.environ["RULES"])
    lines = path.read_text().splitlines(keepends=True)
    verb, name, *words = text.split(" ")
    kept = [line for line in lines if not line.startswith(f"{name} ")]
    if verb == "start":
        rate = next(word for word in words if word.startswith("rate=")).removeprefix("rate=")
        kept.insert(len(kept) - 1, f"{name} {words[0]} {rate}, ref 0\n")
    new = path.with_suffix(".new")
    new.write_text("".join(kept))
    new.replace(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
