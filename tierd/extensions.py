"""Parts of tierd that can be deleted: each is one folder, with one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # tierctl imports this module for each command, and must start quickly
    from prometheus_client.core import Metric

    from tierd.daemon.loop import Daemon
    from tierd.daemon.users import WhoseJobs
    from tierd.structs import Struct

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "tierd.bill": ("bill",),
    "tierd.whatif": ("whatif",),
    "tierd.audit": ("audit",),
    "tierd.brake": (),
}
"""The package of each part, and its commands of tierctl, which are in its module ``command``. Without any, that module
has commands of tierd."""


class Extension:
    """A part while tierd runs. Its package makes it with ``start(daemon, whose)`` in the module ``running``; a part
    without this module has commands only.
    """

    requests: Mapping[str, Callable[[Mapping[str, object]], Struct]] = {}
    """Answers to requests of the control socket, by name."""
    posted: Mapping[str, Callable[[Mapping[str, object]], Struct]] = {}
    """Answers to what other nodes post to tierd's port: ``NAME`` to ``/-/NAME``."""

    def step(self) -> None:
        """Called after each cycle, once verdicts are known. It does not ask the file system."""

    def metrics(self) -> Iterator[Metric]:
        """Its families, read without waiting."""
        return iter(())

    def close(self) -> None:
        """Store what the journal lacks."""


def started(daemon: Daemon, whose: WhoseJobs) -> tuple[Extension, ...]:
    return tuple(import_module(f"{package}.running").start(daemon, whose) for package in COMMANDS
                 if find_spec(f"{package}.running"))
