"""A clock whose time tests set."""

from dataclasses import dataclass

NOW = 1_795_000_000.0
"""Present time of the tests with a Prometheus."""


@dataclass
class SettableClock:
    """The time stands until a test sets ``at``. Nothing may wait."""

    at: float = 1000.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    def wait(self, seconds: float) -> bool:
        raise AssertionError
