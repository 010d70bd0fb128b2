"""How much may be moved, and how fast: token buckets for files and bytes, filled by the clock that is handed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Gt


@dataclass(frozen=True)
class Limits:
    """Rates the mover keeps below, however many files wait."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    files_per_second: Annotated[float, Gt(0)] = 10.0
    bytes_per_second: Annotated[float, Gt(0)] = 20e6
    burst_seconds: Annotated[float, Gt(0)] = 2.0
    """A bucket holds this many seconds' worth."""


class Budget:
    """Tokens left. A file takes one file token and its size in byte tokens; a large file may overdraw a full bucket."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._files = limits.files_per_second * limits.burst_seconds
        self._bytes = limits.bytes_per_second * limits.burst_seconds
        self._filled_at = now

    def take(self, size_bytes: int, now: float) -> str:
        """Take the tokens for a file of this size; or say why not yet, with nothing taken. "" means go."""
        refusal = self.why_not(size_bytes, now)
        if not refusal:
            self._files -= 1
            self._bytes -= size_bytes
        return refusal

    @property
    def left(self) -> tuple[float, float]:
        """Files and bytes that may be moved at once, as of the last look."""
        return self._files, self._bytes

    def why_not(self, size_bytes: int, now: float) -> str:
        """Which limit a file of this size would pass, or ""."""
        limits = self._limits
        passed = max(0.0, now - self._filled_at)
        self._filled_at = max(now, self._filled_at)
        self._files = min(self._files + passed * limits.files_per_second,
                          limits.files_per_second * limits.burst_seconds)
        self._bytes = min(self._bytes + passed * limits.bytes_per_second,
                          limits.bytes_per_second * limits.burst_seconds)
        if self._files < 1:
            return f"{limits.files_per_second:g} files a second are reached"
        if self._bytes <= 0 or (size_bytes > self._bytes and self._bytes < limits.bytes_per_second):
            return f"{limits.bytes_per_second / 1e6:g} MB a second are reached"
        return ""
