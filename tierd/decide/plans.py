"""Plans, and what all policies share: pools and limits, the reserve of the flash pool, the layout with flash first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt

from lustre.layout.model import Component, Layout
from tierd.decide import sizing
from tierd.model import Action, Capacity
from tierd.refusal import Refusal

NO_CHANGELOG_SENTENCE = (
    "no changelog says where it works (is there a reader on each metadata target? lctl changelog_register)"
)


@dataclass(frozen=True)
class FlashSettings:
    """Pools and limits."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    flash_pool: str = "flash"
    hdd_pool: str = "hdd"
    sizing: sizing.Settings = field(default_factory=sizing.Settings)
    reserve: Annotated[float, Ge(0), Lt(1)] = 0.1
    """Share of the flash pool that stays free."""
    reaction_seconds: Annotated[float, Gt(0)] = 30.0
    """The job's new files must fit this long; after that the default is taken back when room runs out."""
    settle_seconds: Annotated[float, Ge(0)] = 10.0
    """A file that was closed less long ago may be written again."""
    read_share: Annotated[float, Gt(0), Lt(1)] = 0.1
    """Reads among the job's RPCs, at the least, for its existing files to be worth moving."""
    max_moves: Annotated[int, Ge(0)] = 1000
    """Files in one plan; the next cycle may plan more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order, and what was considered and refused."""

    actions: tuple[Action, ...]
    refusals: tuple[Refusal, ...]
    recommended: tuple[Action, ...] = ()
    """What the modes of their scopes keep from being done."""


def reserved(capacity: Capacity, settings: FlashSettings) -> float:
    """Bytes of the flash pool that must stay free."""
    return settings.reserve * capacity.size_bytes[settings.flash_pool]


def flash_first(component_bytes: int, present: Layout | None, settings: FlashSettings) -> Layout:
    """First component on flash, the tail on disks as it was, so that no runaway file can fill the flash pool."""
    tail = present.components[-1] if present is not None else Component()
    stripe_count = tail.stripe_count if tail.stripe_count == -1 else max(tail.stripe_count, 1)
    return Layout((
        Component(0, component_bytes, settings.flash_pool, stripe_count=1),
        Component(component_bytes, None, settings.hdd_pool, stripe_count, tail.stripe_size),
    ))


def covers(present: Layout | None, component_bytes: int, flash_pool: str) -> bool:
    """Whether a default layout has the first bytes on flash, or on the MDT, already, as many as wanted."""
    if present is None:
        return False
    first = present.components[0]
    on_flash = first.on_mdt or first.pool == flash_pool
    return on_flash and (first.extent_end is None or first.extent_end >= component_bytes)
