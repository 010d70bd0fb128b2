"""Ranges of values in a scenario. Pydantic checks them where a scenario is read."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Gt

AtLeastOne = Annotated[int, Ge(1)]
Count = Annotated[int, Ge(0)]
NotNegative = Annotated[float, Ge(0)]
Positive = Annotated[float, Gt(0)]
