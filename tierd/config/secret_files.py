"""Files with passwords, tokens and keys that settings name: they must be there, and not readable by everybody."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

from tierd.config.settings import Settings

SECRETS = ("password_file", "token_file", "key_file")
Location = tuple[str, ...]


def secret_file_problems(settings: Settings) -> Iterator[tuple[Location, str]]:
    """Settings whose file cannot be used, with what to do about it."""
    named = [*_secret_files(settings.sense, ("sense",)), *_secret_files(settings.integrations.by_name, ("sense",))]
    for location, path in named:
        try:
            mode = stat.S_IMODE(Path(path).stat().st_mode)
        except OSError as error:
            yield location, f"{path} cannot be read: {error.strerror}"
            continue
        if mode & stat.S_IROTH:
            yield location, f"{path} has mode {mode:04o}, so every user can read it: run chmod 0600 {path}"


def _secret_files(table: object, above: Location) -> Iterator[tuple[Location, str]]:
    if isinstance(table, Mapping):
        parts = {str(name): part for name, part in table.items()}
    elif is_dataclass(table):
        parts = {each.name: getattr(table, each.name) for each in fields(table)}
    else:
        return
    for name, part in parts.items():
        if isinstance(part, str):
            if part and name in SECRETS:
                yield (*above, name), part
        else:
            yield from _secret_files(part, (*above, name))
