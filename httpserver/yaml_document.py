"""Reads a YAML file and checks its keys and types. All mistakes are reported together, with their keys and lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NO_PYYAML = "reading it needs PyYAML, which is not installed: pip install PyYAML"
ANY = ""
"""In a schema, the key of the type of all values whose names are free."""
Keys = tuple[str, ...]
Schema = Mapping[str, Any]
"""For each known key, ``str``, ``bool``, ``list`` (of texts), or the schema of a section."""
_EXPECTED = {str: "a single value", bool: "true or false", list: "a list of single values"}
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Mistakes:
    """The mistakes in a file, one sentence each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted: list[tuple[int, str]] = []
        self._lines: dict[Keys, int] = {}

    def add(self, keys: Keys, sentence: str) -> None:
        """Record a mistake at the line of a key, or of the nearest section around it."""
        known = next((keys[:size] for size in range(len(keys), 0, -1) if keys[:size] in self._lines), ())
        self._noted.append((self._lines.get(known, 0), ".".join(keys) + ": " * bool(keys) + sentence))

    def sentences(self) -> list[str]:
        ordered = sorted(self._noted, key=lambda noted: noted[0])
        return [f"{self._path}:{line}: {text}" if line else f"{self._path}: {text}" for line, text in ordered]

    def read(self, data: bytes, schema: Schema) -> Section:
        """Parse the file. Values of unknown keys and of other types are recorded as mistakes and left out. All values
        stay texts: safe_load would make True of the user "yes", and 8 of "010".
        """
        node = None
        try:
            import yaml  # noqa: PLC0415 - needed by those who give the flag

            node = yaml.compose(data, Loader=yaml.BaseLoader)
        except ImportError:
            self.add((), NO_PYYAML)
        except (RecursionError, yaml.YAMLError) as error:
            mark = getattr(error, "problem_mark", None)
            reason = getattr(error, "problem", None) or str(error).splitlines()[0]
            self._noted.append((mark.line + 1 if mark else 0, f"is not valid YAML: {reason}"))
        return Section(self, (), self._values(node, (), schema))

    def _values(self, node: Any, keys: Keys, schema: Schema) -> dict[str, Any]:
        """The valid values of a section, from its node in the tree of PyYAML; None for an empty file."""
        found: dict[str, Any] = {}
        if node is not None and node.value and node.id != "mapping":
            self.add(keys, "must be a list of `name: value`")
            return found
        for key, value in (node.value if node is not None else ()):
            name = (*keys, str(key.value))
            first, self._lines[name] = self._lines.get(name), key.start_mark.line + 1
            if first is not None:
                self.add(name, f"is set twice; the first time in line {first}")
            kind = schema.get(name[-1], schema.get(ANY)) if key.id == "scalar" else None
            if kind is None:
                self.add(name, f"unknown setting; known settings: {', '.join(schema)}")
            elif isinstance(kind, Mapping):
                found[name[-1]] = self._values(value, name, kind)
            elif (typed := _typed(value, kind)) is None and (value.value or name[-1] not in schema):
                self.add(name, f"must be {_EXPECTED[kind]}")
            elif value.value or name[-1] not in schema:  # a name that is free, as that of a user, needs a value
                found[name[-1]] = typed
        return found


def _typed(node: Any, kind: type) -> object:
    """The value of a node, or the truth that it names; None if it is of another type."""
    if kind is list:
        texts = node.id == "sequence" and all(one.id == "scalar" for one in node.value)
        return [one.value for one in node.value] if texts else None
    text = str(node.value) if node.id == "scalar" else None
    return _FLAGS.get((text or "").lower()) if kind is bool else text


@dataclass(frozen=True, slots=True)
class Section:
    """The valid values of a section, and where to record what is wrong with them."""

    mistakes: Mistakes
    keys: Keys
    values: Mapping[str, Any]

    def wrong(self, name: str, sentence: str) -> None:
        self.mistakes.add((*self.keys, name), sentence)

    def text(self, name: str) -> str:
        return str(self.values.get(name, ""))

    def section(self, name: str) -> Section:
        return Section(self.mistakes, (*self.keys, name), self.values.get(name, {}))
