"""Reads a YAML file and checks its keys and values by a table. All mistakes are reported together, with their lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

ANY = ""
"""In the table of a section whose names are free, the key of their kind."""
Keys = tuple[str, ...]
Kind = Any
"""Of a value: a function of its text that raises ValueError if it is wrong, a list of one such function for lists of
texts, or a table of kinds for a section."""
_EXPECTED: dict[type, str] = {dict: "a list of `name: value`", list: "a list of single values"}
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def of_text(make: Callable[[str], Any], sentence: str) -> Callable[[str], Any]:
    """The kind of the values that ``make`` returns. If it returns None, the sentence says why; ``{}`` is the text."""

    def checked(text: str) -> Any:
        value = make(text)
        if value is None:
            raise ValueError(sentence.format(text))
        return value

    return checked


def one_of(known: Collection[str]) -> Callable[[str], Any]:
    return of_text({name: name for name in known}.get, f"'{{}}' is not one of {', '.join(known)}")


flag = of_text(lambda text: _FLAGS.get(text.lower()), "must be true or false")


class Document:
    """The values of a file, and what is wrong with it."""

    def __init__(self, path: Path, kinds: Mapping[str, Kind]) -> None:
        """Read the file. The value of a setting that has a mistake is None.

        All values are made of their texts: safe_load would make True of the user "yes", and 8 of "010".
        """
        self._path = path
        self._lines: dict[Keys, int] = {}
        self._mistakes: list[tuple[int, str]] = []
        node = None
        try:
            import yaml  # noqa: PLC0415 - needed by those who give the flag

            node = yaml.compose(path.read_bytes(), Loader=yaml.BaseLoader)
        except ImportError:
            self.wrong((), "reading it needs PyYAML, which is not installed: pip install PyYAML")
        except OSError as error:
            self.wrong((), f"cannot be read: {error.strerror}")
        except (RecursionError, yaml.YAMLError) as error:
            mark = getattr(error, "problem_mark", None)
            reason = getattr(error, "problem", None) or str(error).splitlines()[0]
            self._mistakes.append((mark.line + 1 if mark else 0, f"is not valid YAML: {reason}"))
        self.values: dict[str, Any] = self._value(node, (), kinds) or {} if node else {}

    def wrong(self, keys: Keys, sentence: str) -> None:
        """Record a mistake at the line of a key; of a missing one, at that of its section."""
        line = self._lines.get(keys, self._lines.get(keys[:1], 0))
        self._mistakes.append((line, ".".join(keys) + ": " * bool(keys) + sentence))

    def mistakes(self) -> list[str]:
        return [f"{self._path}:{line}: {text}" if line else f"{self._path}: {text}"
                for line, text in sorted(self._mistakes)]

    def _value(self, node: Any, keys: Keys, kind: Kind) -> Any:
        """The value of a node in the tree of PyYAML; None, and a mistake, if it is not of this kind."""
        match node.id, kind:
            case "mapping", dict():
                return self._section(node, keys, kind)
            case "sequence", [of]:
                return [value for each in node.value if (value := self._value(each, keys, of)) is not None]
            case "scalar", make if callable(make):
                try:
                    return make(str(node.value))
                except ValueError as error:
                    self.wrong(keys, str(error))
            case _:
                self.wrong(keys, f"must be {_EXPECTED.get(type(kind), 'a single value')}")
        return None

    def _section(self, section: Any, keys: Keys, kinds: Mapping[str, Kind]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, node in section.value:
            name = str(key.value)
            place = (*keys, name)
            first, self._lines[place] = self._lines.get(place), key.start_mark.line + 1
            if first is not None:
                self.wrong(place, f"is set twice; the first time in line {first}")
            kind = kinds.get(name, kinds.get(ANY)) if key.id == "scalar" else None
            if kind is None:
                self.wrong(place, f"unknown setting; known settings: {', '.join(kinds)}")
            elif node.value or name not in kinds:  # a name that is free, as that of a user, needs a value
                found[name] = self._value(node, place, kind)
        return found
