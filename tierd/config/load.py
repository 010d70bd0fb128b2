"""Reads settings from a TOML file and its drop-ins. Reports every mistake at once, with its line and the correction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tierd.config import act, detectors, files
from tierd.config.detectors import Detectors, configured_detectors
from tierd.config.files import TomlFile, location_of, merge, nearest_line
from tierd.config.old_keys import new_key, with_current_keys
from tierd.config.scopes import Scope, inherit_settings, original_location
from tierd.config.settings import Settings
from tierd.detect.builtin import BUILT_IN


class ConfigurationError(ValueError):
    """Everything that is wrong with a configuration file, one per line: file, line, mistake and correction."""


Warn = Callable[[str], object]
"""Logs one warning about a setting that the next release does not accept."""
log_warning: Warn = logging.getLogger("tierd").warning


def load(path: Path, warn: Warn = log_warning) -> Settings:
    """Read a configuration file and its drop-ins. Raises ConfigurationError with all mistakes, or OSError."""
    try:
        return build(files.read_files(path), detectors.available_detectors(), warn)
    except ValueError as error:  # a plug-in that is broken, a file that is no TOML, or mistakes with their lines
        raise ConfigurationError(str(error)) from error


def parse(data: bytes, name: str, detectors: Detectors = BUILT_IN, warn: Warn = log_warning) -> Settings:
    r"""Settings from the bytes of a TOML file. Raises ConfigurationError.

    >>> parse(b"[small_files_to_flash]\nflash_pool = 'nvme'\n", "t.toml").small_files_to_flash.flash_pool
    'nvme'
    """
    try:
        file = files.parse_file(data, name)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return build((file,), detectors, warn)


def build(files: Sequence[TomlFile], detectors: Detectors, warn: Warn) -> Settings:
    """Settings from files. Of a setting, the value of the last file counts. Raises ConfigurationError."""
    renamed = [with_old_keys_renamed(file, warn) for file in files]
    files, mistaken = [file for file, _ in renamed], [mistake for _, of_file in renamed for mistake in of_file]
    values = merge(files)
    found, mistakes = configured_detectors(values.pop("detect", {}), detectors)
    problems: list[Problem] = [(m.kind, m.location, m.message, m.value) for m in mistakes]
    settings = Settings()
    try:
        settings = TypeAdapter(Settings).validate_python(inherit_settings(values))
    except ValidationError as error:
        problems = [*without_repetitions(error, values), *problems]
    if problems or mistaken:
        raise ConfigurationError("\n".join([*mistaken, *(
            f"{location_of(files, problem[1])}: {describe_problem(*problem, detectors)}" for problem in problems)]))
    return replace(settings, detect=found)


def with_old_keys_renamed(file: TomlFile, warn: Warn) -> tuple[TomlFile, list[str]]:
    """The file under the names of this version, and a mistake for each setting given under both names.

    Each old key is a warning with its file, its line and the new key.
    """
    values, found = with_current_keys(file.values)
    mistakes = []
    for old in found:
        where, key = ".".join(map(str, old.location)), str(old.location[-1])
        line = f"{file.name}:{nearest_line(file.text, old.location)[0]}"
        if old.both:
            mistakes.append(f"{line}: {where}: this is the old name of {new_key(key)}, which is set as well: "
                            f"remove {key}")
        else:
            warn(f"{line}: {where}: this setting is called {new_key(key)} now; rename it, as the next release does not "
                 f"accept {key}")
    return replace(file, values=values), mistakes


Problem = tuple[str, tuple[int | str, ...], str, object]
"""Kind of mistake, location, message, and the invalid value."""


def without_repetitions(error: ValidationError, values: Mapping[str, object]) -> list[Problem]:
    """Every mistake once, without its copies in scopes that inherit the setting."""
    found = [(e["type"], tuple(e["loc"]), e["msg"], e.get("input")) for e in error.errors(include_url=False)]
    places = {location for _, location, _, _ in found}
    return [each for each in found if (place := original_location(each[1], values)) == each[1] or place not in places]


def describe_problem(
    kind: str, location: Sequence[int | str], message: str, value: object, detectors: Detectors
) -> str:
    """The text of one mistake."""
    where = ".".join(str(part) for part in location if part != "[key]")
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"{where}: unknown setting; known here: {', '.join(known_settings(location[:-1], detectors))}"
    stands = "" if isinstance(value, dict | list | tuple) else f" (it is {value!r})"
    return f"{where}: {message.removeprefix('Value error, ')}{stands}"


def known_settings(location: Sequence[int | str], detectors: Detectors) -> list[str]:
    """Names of the settings in one table."""
    tables = {detector.table: detector.settings() for detector in detectors}
    table: Any = Settings()
    for part in location:
        if part == "scopes":
            table = Scope("/", limits=act.Limits())
        elif isinstance(part, int):
            continue
        elif table is tables or part != "detect":
            table = table[part] if table is tables else getattr(table, part)
        else:
            table = tables
    return sorted(table) if table is tables else sorted(f.name for f in fields(table))
