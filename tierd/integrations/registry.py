"""All integrations. A new one is a folder with ``source.py`` in it, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # tierctl imports this module for each command, and must start quickly
    from tierd.integrations.protocol import Integration, Site, Source

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "robinhood": (),
    "access_logs": (),
    "powerflex": (),
    "slurm": ("slurm",),
}
"""Each integration and its commands of tierctl (module ``command``), in the order in which hints are asked for."""


@cache
def integrations() -> Mapping[str, Integration]:
    return {name: import_module(f"tierd.integrations.{name}.source").INTEGRATION for name in COMMANDS}


def default_settings() -> Mapping[str, object]:
    """The settings of all integrations where the configuration has none: nothing is read."""
    return {name: integration.settings() for name, integration in integrations().items()}


def started(settings: Mapping[str, object], site: Site) -> tuple[Source, ...]:
    return tuple(integration.start(settings[name], site) for name, integration in integrations().items()
                 if integration.configured(settings[name]))
