"""A TOML file and its drop-ins: merged in order, each setting with its file and line.

``/etc/tierd/tierd.toml`` comes first, then ``/etc/tierd/tierd.d/*.toml`` by name. Of a setting the last value counts;
tables are merged, and lists of tables (``[[scopes]]``) are concatenated.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from pathlib import Path
from typing import TypeGuard


@dataclass(frozen=True)
class TomlFile:
    """One parsed file."""

    name: str
    text: str
    values: Mapping[str, object]


def parse_file(data: bytes, name: str) -> TomlFile:
    """A file from its bytes. Raises ValueError with the name."""
    try:
        text = data.decode("utf-8")
        return TomlFile(name, text, tomllib.loads(text))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{name}: not a TOML file: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{name}: lists or tables are nested too deeply") from error


def file_and_drop_ins(path: Path) -> tuple[Path, ...]:
    """The file and its drop-ins in the order of merging. Hidden files, which editors make, are ignored."""
    found = sorted(p for p in (path.parent / f"{path.stem}.d").glob("*.toml") if not p.name.startswith("."))
    return (path, *found)


def read_files(path: Path) -> tuple[TomlFile, ...]:
    """The file and its drop-ins. Raises ValueError naming every invalid TOML file, or OSError."""
    found: list[TomlFile] = []
    problems: list[str] = []
    for each in file_and_drop_ins(path):
        try:
            found.append(parse_file(each.read_bytes(), str(each)))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))
    return tuple(found)


def merge(files: Sequence[TomlFile]) -> dict[str, object]:
    r"""All values as one table.

    >>> merge([parse_file(b"[a]\nx = 1\ny = 1\n", "1"), parse_file(b"[a]\ny = 2\n", "2")])
    {'a': {'x': 1, 'y': 2}}
    """
    return reduce(over, (file.values for file in files), {})


def over(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Two tables as one: of a key in both, the value of the second counts."""
    made = dict(below)
    for key, value in above.items():
        present = made.get(key)
        if isinstance(present, Mapping) and isinstance(value, Mapping):
            made[key] = over(present, value)
        elif _tables(present) and _tables(value):
            made[key] = [*present, *value]
        else:
            made[key] = value
    return made


def _tables(value: object) -> TypeGuard[list[Mapping[str, object]]]:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def location_of(files: Sequence[TomlFile], location: Sequence[int | str]) -> tuple[int, int]:
    r"""Number of the file, and line, of a setting of the merged values: the last file with the longest matching part.

    >>> files = [parse_file(b"[a]\nx = 1\n", "1.toml"), parse_file(b"[a]\n\nx = 2\n", "2.toml")]
    >>> location_of(files, ("a", "x")), location_of(files, ("b",))
    ((1, 3), (0, 1))
    """
    best, depth, before = (0, 1), 0, 0
    for number, file in enumerate(files):
        own = list(location)
        if len(own) > 1 and isinstance(own[1], int):  # a list of tables goes on from file to file
            tables = file.values.get(str(own[0]))
            count = len(tables) if isinstance(tables, list) else 0
            own[1] -= before
            before += count
            if not 0 <= own[1] < count:
                continue
        line, found = nearest_line(file.text, own)
        if found and found >= depth:
            best, depth = (number, line), found
    return best


_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]#]+?)\s*\]")
_KEY = re.compile(r"\s*[\"']?([^\"'=\s#]+)[\"']?\s*=")


def nearest_line(text: str, location: Sequence[int | str]) -> tuple[int, int]:
    r"""Line of a setting in a file, or else of the header of its table, and the number of matching location parts.

    >>> nearest_line("[act]\nmode = 1\n[[scopes]]\npath = '/a'\n[[scopes]]\n[scopes.limits]\nx = 1\n",
    ...         ("scopes", 1, "limits", "x"))
    (7, 4)
    """
    wanted, places = tuple(map(str, location)), _places(text)
    for depth in range(len(wanted), 0, -1):
        if wanted[:depth] in places:
            return places[wanted[:depth]], depth
    return 1, 0


@lru_cache(maxsize=64)
def _places(text: str) -> Mapping[tuple[str, ...], int]:
    """Each table and key of a file with its first line."""
    found: dict[tuple[str, ...], int] = {}
    counts: dict[str, int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            names = [part.strip().strip("\"'") for part in header[2].split(".")]
            if header[1] == "[[":
                counts[names[0]] = counts.get(names[0], -1) + 1
            index = [str(counts[names[0]])] if names[0] in counts else []
            table = (names[0], *index, *names[1:])
        key = None if header else _KEY.match(line)
        place = (*table, *key[1].split(".")) if key else table
        for end in range(1, len(place) + 1):
            found.setdefault(place[:end], number)
    return found
