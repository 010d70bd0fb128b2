"""Exporters by file and by name: what is bad keeps what was good, and says so."""

from __future__ import annotations

from dataclasses import dataclass

from tests.tierd.sense.test_prometheus import (
    NOW,
)


@dataclass
class SettableClock:
    at: float = 1000.0

    def now(self) -> float:
        return self.at

    def wait(self, seconds: float) -> bool:
        raise AssertionError


class StoppedClock:
    def now(self) -> float:
        return NOW

    def wait(self, seconds: float) -> bool:
        raise AssertionError
