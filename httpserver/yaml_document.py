"""Reads a YAML file and checks its keys and types. All mistakes are reported together, with their keys and lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml

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
        """Parse the file. Values of unknown keys and of other types are recorded as mistakes and left out."""
        values = None
        try:
            import yaml  # noqa: PLC0415 - needed by those who give the flag

            self._note_lines(yaml.compose(data, Loader=yaml.BaseLoader), (), schema)
            # All values stay texts: safe_load would make True of the user "yes", and 8 of "010".
            values = yaml.load(data, Loader=yaml.BaseLoader)  # noqa: S506 - makes texts, lists and mappings only
        except ImportError:
            self.add((), NO_PYYAML)
        except (RecursionError, yaml.YAMLError) as error:
            mark = getattr(error, "problem_mark", None)
            reason = getattr(error, "problem", None) or str(error).splitlines()[0]
            self._noted.append((mark.line + 1 if mark else 0, f"is not valid YAML: {reason}"))
        return Section(self, (), self._checked((), values or {}, schema))

    def _note_lines(self, node: yaml.Node | None, keys: Keys, schema: Schema) -> None:
        """Note the line of each key, down to the depth of the schema. YAML itself takes the last of repeated keys."""
        for key, value in node.value if node is not None and node.tag == "tag:yaml.org,2002:map" else ():
            name = (*keys, str(key.value))
            line = key.start_mark.line + 1
            if name in self._lines:
                first, self._lines[name] = self._lines[name], line
                self.add(name, f"is set twice; the first time in line {first}")
            self._lines[name] = line
            inner = schema.get(name[-1], schema.get(ANY))
            if isinstance(inner, Mapping):
                self._note_lines(value, name, inner)

    def _checked(self, keys: Keys, values: object, schema: Schema) -> dict[str, Any]:
        if not isinstance(values, dict):
            self.add(keys, "must be a list of `name: value`")
            return {}
        return dict(self._known(keys, values, schema))

    def _known(self, keys: Keys, values: Mapping[object, Any], schema: Schema) -> Iterator[tuple[str, Any]]:
        for key, value in values.items():
            name = (*keys, str(key))
            kind = schema.get(name[-1], schema.get(ANY))
            if kind is None:
                self.add(name, f"unknown setting; known settings: {', '.join(schema)}")
            elif isinstance(kind, Mapping):
                yield name[-1], self._checked(name, value or {}, kind)
            elif value and (typed := _typed(value, kind)) is None:
                self.add(name, f"must be {_EXPECTED[kind]}")
            elif value:
                yield name[-1], typed


def _typed(value: object, kind: type) -> object:
    """Return the value, or the truth that it names; None if it is of another type."""
    if kind is list:
        return value if isinstance(value, list) and all(isinstance(one, str) for one in value) else None
    text = value if isinstance(value, str) else None
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
