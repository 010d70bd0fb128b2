"""From a TOML file and its drop-ins to settings: every mistake at once, with the line it stands in and the mend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tierd.act import budget
from tierd.config import plugins, toml_files
from tierd.config.plugins import Detectors
from tierd.config.scopes import Scope, inherited, original
from tierd.config.settings import Settings
from tierd.config.toml_files import TomlFile, where
from tierd.detect.builtin import BUILT_IN


class ConfigurationError(ValueError):
    """Everything that is wrong with a configuration file, a line each: file, line, what, and the mend."""


def load(path: Path) -> Settings:
    """Read a configuration file and its drop-ins. Raises ConfigurationError with all mistakes, or OSError."""
    try:
        return built(toml_files.read(path), plugins.available())
    except ValueError as error:  # a plug-in that is broken, a file that is no TOML, or mistakes with their lines
        raise ConfigurationError(str(error)) from error


def parse(data: bytes, name: str, detectors: Detectors = BUILT_IN) -> Settings:
    r"""Settings from the bytes of a TOML file. Raises ConfigurationError.

    >>> parse(b"[small_files_to_flash]\nflash_pool = 'nvme'\n", "t.toml").small_files_to_flash.flash_pool
    'nvme'
    """
    try:
        file = toml_files.parse(data, name)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return built((file,), detectors)


def built(files: Sequence[TomlFile], detectors: Detectors) -> Settings:
    """Settings from files, the last word of which counts. Raises ConfigurationError."""
    values = toml_files.merged(files)
    found, mistakes = plugins.configured(values.pop("detect", {}), detectors)
    problems: list[Problem] = [(m.kind, m.location, m.message, m.value) for m in mistakes]
    settings = Settings()
    try:
        settings = TypeAdapter(Settings).validate_python(inherited(values))
    except ValidationError as error:
        problems = [*once(error, values), *problems]
    if problems:
        raise ConfigurationError("\n".join(f"{where(files, problem[1])}: {complaint(*problem, detectors)}"
                                           for problem in problems))
    return replace(settings, detect=found)


Problem = tuple[str, tuple[int | str, ...], str, Any]
"""Its kind, where it is, what is wrong, and what stands there."""


def once(error: ValidationError, values: Mapping[str, Any]) -> list[Problem]:
    """Every mistake once: not again for each scope that has the setting from the rest of the file."""
    found = [(e["type"], tuple(e["loc"]), e["msg"], e.get("input")) for e in error.errors(include_url=False)]
    places = {location for _, location, _, _ in found}
    return [each for each in found if (place := original(each[1], values)) == each[1] or place not in places]


def complaint(kind: str, location: Sequence[int | str], message: str, value: Any, detectors: Detectors) -> str:
    """One mistake, in words."""
    where = ".".join(str(part) for part in location if part != "[key]")
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"{where}: unknown setting; known here: {', '.join(known(location[:-1], detectors))}"
    stands = "" if isinstance(value, dict | list | tuple) else f" (it is {value!r})"
    return f"{where}: {message.removeprefix('Value error, ')}{stands}"


def known(location: Sequence[int | str], detectors: Detectors) -> list[str]:
    """Names of the settings in one table."""
    tables = {detector.table: detector.settings() for detector in detectors}
    table: Any = Settings()
    for part in location:
        if part == "scopes":
            table = Scope("/", limits=budget.Limits())
        elif isinstance(part, int):
            continue
        elif table is tables or part != "detect":
            table = table[part] if table is tables else getattr(table, part)
        else:
            table = tables
    return sorted(table) if table is tables else sorted(f.name for f in fields(table))
