from collections.abc import Mapping
from typing import Any

from tierd.model import JobLoad

def loads(
    changed: list[Any],
    form: tuple[int, int, int],
    positions: tuple[int, ...],
    others: tuple[int, ...],
    uppers: tuple[int, ...],
    max_operations: float,
    max_bytes: float,
    known: dict[tuple[float, ...], Mapping[int, float]],
    make: tuple[type[JobLoad], Mapping[int, float]],
    /,
) -> list[JobLoad | None]: ...
