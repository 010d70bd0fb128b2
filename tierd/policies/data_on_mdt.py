"""Chooses the metadata target (DoM) instead of flash targets for the first component of small files.

An open of a file with data on the MDT returns the data. Measured (Cray, CUG 2018, section V): reads 2 times as fast as
from disks and up to 3 times as fast as from flash targets; writes 20 to 40% faster than on disks, but random writes of
4 KiB slower than on flash targets; in unique directories 2.1 times the creates and 1.4 times the stats (table 1).

What earlier acts of this site won back on flash and on the MDT decides, once it differs enough. Until then the mix of
reads and writes does. Where flash has no room, the disks are the alternative, and the MDT is better for any mix.

A full MDT stops the whole file system, and a slow one all of its users. The MDT is chosen only while every MDT has room
for the bytes and the files of half an hour, and is about as fast as in quiet times. Whatever is unknown leaves the
files to flash.

The component holds the whole small file, as on flash (:mod:`tierd.decide.sizing`). Lustre takes components of at most
``lod.*.dom_stripesize``, 1 MiB by default.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean
from typing import Annotated

from annotated_types import Ge, Gt, Le, Lt

from lustre.layout.model import Component, Layout
from lustre.layout.size import size_text
from tierd.decide import benefit
from tierd.model import Capacity, Table
from tierd.policies.protocol import LEAVE, Choice, Policy, Situation, Tables, Use
from tierd.refusal import Reason, Refusal
from tierd.text import percent, rate_text

ON_MDT = ""
"""Pool of a component on the MDT, in verdicts of the journal."""
DEFAULT_LIMIT_BYTES = 1 << 20
"""Lustre's default of ``dom_stripesize``, for MDTs whose limit is unknown."""
MAX_SLOWDOWN = 1.5
"""Service time of metadata operations now, as a multiple of that in quiet times, above which nothing goes to the MDTs.
A choice."""
FILL_SECONDS = 1800.0
"""Time for which new files must fit. A choice."""


@dataclass(frozen=True)
class DataOnMdt(Table):
    """When the first component is on the MDT instead of flash: the table ``[data_on_mdt]``."""

    largest_bytes: Annotated[int, Gt(0), Le(4 << 20)] = 4 << 20
    """Maximum end of a component on the MDT. The limit of the MDTs (``lod.*.dom_stripesize``) applies too. 4 MiB is the
    largest of the paper."""
    reads_per_write: Annotated[float, Ge(1)] = 3.0
    """Reads per write from which the MDT is expected to be better than flash. Reads are up to 3 times as fast there;
    a write is assumed to be at most 3 times as slow, a choice, because the paper gives no figure."""
    min_free: Annotated[float, Gt(0), Lt(1)] = 0.3
    """Share of bytes and of inodes that must stay free on every MDT, after half an hour of new files. A choice: a
    full MDT stops everybody."""


def place(on_flash: Layout, use: Use, situation: Situation, flash_has_room: bool) -> Choice:
    end, capacity, settings = on_flash.components[0].extent_end, situation.capacity, situation.tables.of(DataOnMdt)
    if end is None:
        return Choice(on_flash)
    better, why = preferred(use, situation, settings) if flash_has_room else (
        True, "flash has no room, and the MDT writes small files 20 to 40% faster than disks (Cray, CUG 2018)")
    if not better:
        return Choice(on_flash, f"on flash, because {why}")
    if refused := refusal(end, use, capacity, settings):
        return Choice(on_flash, f"on flash, because {refused.sentence}", refused)
    layout = replace(on_flash, components=(Component(0, end, pattern="mdt"), *on_flash.components[1:]))
    spare = capacity.metadata.spare_bytes(settings.min_free) if capacity.metadata else 0.0  # a file stays on its MDT
    return Choice(layout, f"on the MDT, because {why}", room_bytes=max(0.0, spare))


def preferred(use: Use, situation: Situation, settings: DataOnMdt) -> tuple[bool, str]:
    """Whether the MDT is expected to win back more than flash, and why.

    A difference below the smallest gain that is acted on decides nothing. What was not tried yet is expected to have
    the first effect.
    """
    capacity, flash_pool = situation.capacity, situation.pools.flash_pool
    on_mdt, on_flash = (benefit.effect(capacity.won_back.get(pool, ())) for pool in (ON_MDT, flash_pool))
    difference = on_mdt - on_flash
    if abs(difference) >= situation.benefit.min_gain:
        return difference > 0, f"the MDT is expected to win back {percent(abs(difference))} of a loss " + (
            "more" if difference > 0 else "less") + measured_text(capacity, flash_pool)
    mostly_read = use.read_share >= settings.reads_per_write * (1 - use.read_share)
    published = ("an open returns the data (Cray, CUG 2018: up to 3 times the reads of flash targets)" if mostly_read
                 else "writes are slower on the MDT (Cray, CUG 2018)")
    return mostly_read, f"{percent(use.read_share)} of the operations are reads: {published}"


def refusal(end_bytes: int, use: Use, capacity: Capacity, settings: DataOnMdt) -> Refusal | None:
    targets = capacity.metadata
    if targets is None or not targets.spaces:
        return Refusal(Reason.MDT_UNKNOWN, "the free space of an MDT is unknown")
    limit = min(settings.largest_bytes, DEFAULT_LIMIT_BYTES if targets.data_limit_bytes is None
                else targets.data_limit_bytes)
    if end_bytes > limit:
        return Refusal(Reason.MDT_LIMIT, f"the files need {size_text(end_bytes)}, and an MDT holds "
                       f"at most {size_text(limit)} of a file")
    if targets.slowdown is None:
        return Refusal(Reason.MDT_UNKNOWN, "the service times of the MDTs are not known, or not for long enough")
    if targets.slowdown > MAX_SLOWDOWN:
        return Refusal(Reason.MDT_BUSY, f"operations on an MDT take {targets.slowdown:.1f} times as long as in quiet "
                       "times")
    if (targets.spare_bytes(settings.min_free) < use.growth_bytes_per_second * FILL_SECONDS
            or targets.spare_inodes(settings.min_free) < use.files_per_second * FILL_SECONDS):
        return Refusal(Reason.MDT_ROOM, f"an MDT has {percent(targets.free_share)} free, the job adds "
                       f"{rate_text(use.growth_bytes_per_second)} in {use.files_per_second:.0f} files/s, and "
                       f"{percent(settings.min_free)} must stay free")
    return None


def measured_text(capacity: Capacity, flash_pool: str) -> str:
    """What the site's own acts won back on the MDT and on flash, as the end of a sentence; "" without verdicts.

    >>> measured_text(Capacity({}, {}, {}, won_back={"": [0.9, 0.7], "flash": [0.4]}), "flash")
    '; here earlier acts won back 80% on the MDT and 40% on flash'
    """
    parts = [f"{percent(fmean(min(1.0, max(-1.0, part)) for part in seen))} on {where}"
             for where, pool in (("the MDT", ON_MDT), ("flash", flash_pool))
             if (seen := capacity.won_back.get(pool))]
    return f"; here earlier acts won back {' and '.join(parts)}" if parts else ""


def is_short(layout: Layout, room: Capacity, tables: Tables) -> str | None:
    """Whether an MDT has so little room that default layouts with data on the MDT are undone; not if it is unknown."""
    if not layout.components[0].on_mdt:
        return None
    keep = LEAVE * tables.of(DataOnMdt).min_free
    return "an MDT is short of space" if room.metadata is not None and room.metadata.free_share < keep else ""


POLICY = Policy("data-on-mdt", tables={"data_on_mdt": DataOnMdt}, option="places small files on the MDT", place=place,
                is_short=is_short)
