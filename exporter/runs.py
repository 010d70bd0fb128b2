"""What scans and checks of targets have in common: a state, and flags, each of which is a series that is always 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from exporter.families import Gauge
from exporter.page import Page


class Run(Protocol):
    """A run under way, or the last one."""

    @property
    def status(self) -> bytes:
        """Empty where the file does not say."""

    @property
    def flags(self) -> Sequence[bytes]:
        """Those that are set."""


def show(page: Page, labels: bytes, run: Run, state: Gauge, flag: Gauge) -> None:
    """The state of a run, and its flags, each once."""
    if run.status:
        page.sample(state, labels + b',state="%b"' % run.status, 1)
    for name in dict.fromkeys(run.flags):
        page.sample(flag, labels + b',flag="%b"' % name, 1)
