"""The circuit breaker: too many moves fail, or one file is in doubt, and nothing is moved until somebody looks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Le


@dataclass(frozen=True)
class Settings:
    """When it opens."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    failures: Annotated[int, Ge(1)] = 10
    """Failed moves among the last ``window``, at the least."""
    share: Annotated[float, Gt(0), Le(1)] = 0.5
    """Their share of the last ``window`` moves, at the least."""
    window: Annotated[int, Ge(1)] = 100


class Breaker:
    """Counts the last moves. Only what Lustre could not do counts: a refusal or a busy file is no failure."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._failed: deque[bool] = deque(maxlen=settings.window)

    def note(self, result: str, path: str) -> str:
        """Take one result in; why nothing more may be moved, or ""."""
        if result == "doubtful":
            return f"a file is not as it should be after its move: {path}"
        self._failed.append(result == "failed")
        failures = sum(self._failed)
        if failures >= self._settings.failures and failures >= self._settings.share * len(self._failed):
            self._failed.clear()
            return f"{failures} of the last moves failed"
        return ""
