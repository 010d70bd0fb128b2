"""Reads YAML strictly. Every value has its line number, and all mistakes are reported together."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml

NO_PYYAML = "reading it needs PyYAML, which is not installed: pip install PyYAML"
_EMPTY = "tag:yaml.org,2002:null"
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Mistakes:
    """The mistakes in a file, one sentence each, with file and line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted: list[tuple[int, str]] = []

    def add(self, line: int, sentence: str) -> None:
        """Record a mistake; line 0 means the whole file."""
        self._noted.append((line, sentence))

    def sentences(self) -> list[str]:
        """Return all mistakes in the order of their lines."""
        ordered = sorted(self._noted, key=lambda noted: noted[0])
        return [f"{self._path}:{line}: {text}" if line else f"{self._path}: {text}" for line, text in ordered]


class ConfigSection:
    """A mapping in the file, which may be absent."""

    def __init__(
        self, notes: Mistakes, name: str, node: yaml.Node | None, known: Collection[str] | None = None
    ) -> None:
        self._notes = notes
        self._name = name
        self._values: dict[str, yaml.Node] = {}
        self.at = 0 if node is None else _line(node)
        """The line at which the section begins."""
        if node is None or node.tag == _EMPTY:
            return
        if _kind(node) != "mapping":
            notes.add(self.at, f"{name or 'the file'} must be a list of `name: value`")
            return
        for key, value in node.value:
            self._take(key, value, known)

    def _take(self, key: yaml.Node, value: yaml.Node, known: Collection[str] | None) -> None:
        name = str(key.value) if _kind(key) == "scalar" else ""
        if not name or (known is not None and name not in known):
            expected = f"; known settings: {', '.join(known)}" if known is not None else ""
            self.wrong(_line(key), f"unknown setting: {self._full(name) or 'this'}{expected}")
        elif name in self._values:
            self.wrong(_line(key), f"{self._full(name)} is set twice; the first time in line {self.line(name)}")
        elif value.tag != _EMPTY:
            self._values[name] = value

    def __bool__(self) -> bool:
        return bool(self._values)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def _full(self, name: str) -> str:
        return f"{self._name}.{name}" if self._name and name else name

    def wrong(self, line: int, sentence: str) -> None:
        """Record a mistake."""
        self._notes.add(line, sentence)

    def mistake(self, name: str, sentence: str) -> None:
        """Record a mistake in one setting."""
        self._notes.add(self.line(name), f"{self._full(name)}: {sentence}")

    def line(self, name: str) -> int:
        """Return the line of a setting, or of the section if the setting is absent."""
        node = self._values.get(name)
        return self.at if node is None else _line(node)

    def text(self, name: str) -> str:
        """Return a setting with a single value; empty if absent."""
        node = self._values.get(name)
        if node is None:
            return ""
        if _kind(node) != "scalar":
            self.mistake(name, "must be a single value")
            return ""
        return str(node.value)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a setting that is true or false."""
        text = self.text(name).lower()
        if text and text not in _FLAGS:
            self.mistake(name, "must be true or false")
        return _FLAGS.get(text, default)

    def words(self, name: str) -> tuple[str, ...]:
        """Return a setting that is a list of words."""
        node = self._values.get(name)
        if node is None:
            return ()
        if _kind(node) != "sequence" or any(_kind(item) != "scalar" for item in node.value):
            self.mistake(name, "must be a list, one value a line after a dash")
            return ()
        return tuple([str(item.value) for item in node.value])

    def section(self, name: str, known: Collection[str] | None = None) -> ConfigSection:
        """Return a nested mapping."""
        return ConfigSection(self._notes, self._full(name), self._values.get(name), known)

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield names and values of a mapping of single values."""
        return ((name, self.text(name)) for name in self._values)


def _kind(node: yaml.Node) -> str:
    """Return ``scalar``, ``sequence`` or ``mapping``."""
    return str(getattr(node, "id", ""))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def parse_yaml(data: bytes, notes: Mistakes, known: Collection[str]) -> ConfigSection:
    """Parse the file as a section. Invalid YAML is recorded as a mistake."""
    try:
        import yaml  # noqa: PLC0415 - needed by those who give the flag
    except ImportError:
        notes.add(0, NO_PYYAML)
        return ConfigSection(notes, "", None)
    try:
        return ConfigSection(notes, "", yaml.compose(data, Loader=yaml.SafeLoader), known)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        notes.add(line, f"is not valid YAML: {error.problem or error.context}")
    except (yaml.YAMLError, RecursionError) as error:
        notes.add(0, f"is not valid YAML: {str(error).splitlines()[0]}")
    return ConfigSection(notes, "", None)
