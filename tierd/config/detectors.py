"""The available detectors: built in, and of other packages (entry points)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from pydantic import ValidationError

from tierd.detect.builtin import BUILT_IN
from tierd.detect.plugin import GROUP, AnyDetector, Common, ConfiguredDetector, Detector
from tierd.validators import validator_of

Detectors = Sequence[AnyDetector]


class PluginError(ValueError):
    """A detector of another package cannot be used. The message has the reason."""


@dataclass(frozen=True, slots=True)
class DetectorMistake:
    """One mistake in the tables of detectors, with pydantic's kind of error."""

    kind: str
    location: tuple[int | str, ...]
    message: str
    value: object


def available_detectors(found: Iterable[EntryPoint] | None = None) -> Detectors:
    """Built-in detectors, then detectors of other packages by name. Raises PluginError for an invalid detector."""
    detectors = list(BUILT_IN)
    for entry in sorted(entry_points(group=GROUP) if found is None else found, key=lambda e: e.name):
        try:
            detector = entry.load()
        except Exception as error:
            raise PluginError(f"detector {entry.name} ({entry.value}) cannot be loaded: {error}") from error
        if not isinstance(detector, Detector) or not issubclass(detector.settings, Common):
            raise PluginError(f"detector {entry.name} ({entry.value}) is not a tierd.detect.plugin.Detector with "
                              "settings derived from tierd.detect.plugin.Common")
        if detector.name in {d.name for d in detectors}:
            raise PluginError(f"detector {entry.name} ({entry.value}): the name {detector.name!r} is taken")
        detectors.append(detector)
    return tuple(detectors)


def default_detectors(detectors: Detectors = BUILT_IN) -> tuple[ConfiguredDetector, ...]:
    """All detectors with their default settings."""
    return tuple(ConfiguredDetector(detector, detector.settings()) for detector in detectors)


def configured_detectors(
    tables: object, detectors: Detectors
) -> tuple[tuple[ConfiguredDetector, ...], list[DetectorMistake]]:
    """Detectors with the settings of their tables, and every mistake of every table."""
    if not isinstance(tables, Mapping):
        return (), [
            DetectorMistake("no_table", ("detect",), "this is a table of tables, one for each detector", tables)
        ]
    known = {detector.table: detector for detector in detectors}
    mistakes = [DetectorMistake("extra_forbidden", ("detect", name), "", values)
                for name, values in tables.items() if name not in known]
    found = []
    for table, detector in known.items():
        try:
            settings = validator_of(detector.settings).validate_python(tables.get(table, {}))
        except ValidationError as error:
            mistakes += [DetectorMistake(e["type"], ("detect", table, *e["loc"]), e["msg"], e.get("input"))
                         for e in error.errors(include_url=False)]
        else:
            found.append(ConfiguredDetector(detector, settings))
    return tuple(found), mistakes
