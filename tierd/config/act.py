"""Settings of acts: ``[act]``, ``[limits]``, ``[claim]`` and ``[movers]``, and maintenance windows.

Maintenance windows are the hours of the week in which tierd may change something, in this node's local time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, Strict

from tierd.acts import ActKind
from tierd.model import Table
from tierd.policies.registry import acted_on_by_default
from tierd.refusal import Reason, Refusal
from tierd.validators import Seconds

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MINUTES_A_DAY = 24 * 60
_WINDOW_FORM = re.compile(r"(?:(?P<days>[A-Za-z,\-]+)\s+)?(?P<begin>\d\d?:\d\d)-(?P<end>\d\d?:\d\d)")


@cache
def minutes_of_window(text: str) -> frozenset[int]:
    """The minutes of the week, from Monday 00:00 on, that are in a maintenance window. Raises ValueError with examples.

    The days are those on which it begins. An end before the begin is on the next day.

    >>> sorted(minutes_of_window("Sun 23:59-00:02")), len(minutes_of_window("Sat,Sun 00:00-24:00"))
    ([0, 1, 10079], 2880)
    """
    found = _WINDOW_FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"not a maintenance window: {text!r}; write 'Mon-Fri 20:00-06:00', 'Sat,Sun 00:00-24:00' "
                         "or '22:00-04:00'")
    begin, end = _minutes(found["begin"], text), _minutes(found["end"], text)
    if begin == end:
        raise ValueError(f"maintenance window {text!r} begins and ends at the same time; the whole day is 00:00-24:00")
    begin %= _MINUTES_A_DAY
    length = end - begin if begin < end else end - begin + _MINUTES_A_DAY
    return frozenset((day * _MINUTES_A_DAY + begin + n) % (7 * _MINUTES_A_DAY)
                     for day in _days(found["days"], text) for n in range(length))


def window_refusal(windows: tuple[str, ...], now: float) -> Refusal | None:
    """Refuses changes outside of the maintenance windows at a time (epoch seconds). No windows allow any time."""
    local = datetime.fromtimestamp(now).astimezone()
    minute = local.weekday() * _MINUTES_A_DAY + local.hour * 60 + local.minute
    if not windows or any(minute in minutes_of_window(each) for each in windows):
        return None
    return Refusal(Reason.MAINTENANCE_WINDOW,
                   f"outside of the maintenance windows ({'; '.join(windows)}; it is {local:%a %H:%M %Z})")


def valid_window(text: str) -> str:
    """The text, if it is a window. For settings."""
    minutes_of_window(text)
    return text


def _days(words: str | None, text: str) -> frozenset[int]:
    if words is None:
        return frozenset(range(7))
    found: set[int] = set()
    for part in words.split(","):
        names = [name.capitalize() for name in part.split("-")]
        if not 1 <= len(names) <= 2 or any(name not in DAYS for name in names):
            raise ValueError(f"maintenance window {text!r}: {part!r} is not a day; days are {', '.join(DAYS)}")
        first, last = DAYS.index(names[0]), DAYS.index(names[-1])
        found.update((first + n) % 7 for n in range((last - first) % 7 + 1))
    return frozenset(found)


def _minutes(clock: str, text: str) -> int:
    hours, minutes = map(int, clock.split(":"))
    if minutes > 59 or hours * 60 + minutes > _MINUTES_A_DAY:
        raise ValueError(f"maintenance window {text!r}: {clock} is not a time of day")
    return hours * 60 + minutes


MIN_KEEP_DAYS = 30
"""Changelog records, waiting moves and verdicts refer to acts that are days old."""


def text_like(form: str, otherwise: str) -> AfterValidator:
    """A validator of text that has this form as a whole. ``otherwise`` says what to write instead."""
    def checked(text: str) -> str:
        if not re.fullmatch(form, text):
            raise ValueError(otherwise)
        return text

    return AfterValidator(checked)


WholePath = Annotated[str, text_like(r"/[^\0]*", "give an absolute path")]
WholePathOrNone = Annotated[str, text_like(r"(?:/[^\0]*)?", "give an absolute path")]


def retention_days(days: float) -> float:
    """Days for which the journal keeps records; 0 for ever. Raises ValueError for fewer than ``MIN_KEEP_DAYS``.

    >>> retention_days(0.0), retention_days(365.0)
    (0.0, 365.0)
    """
    if days != 0 and not MIN_KEEP_DAYS <= days < float("inf"):
        raise ValueError(f"give at least {MIN_KEEP_DAYS} days, or 0 to keep records for ever")
    return days


@dataclass(frozen=True)
class Rate(Table):
    """Files and bytes per second."""

    files_per_second: Annotated[float, Gt(0)] = 10.0
    bytes_per_second: Annotated[float, Gt(0)] = 20e6


@dataclass(frozen=True)
class Limits(Rate):
    """Maximum rates of moves."""

    burst_seconds: Seconds = 2.0
    """Size of the token bucket: moves may use the rates of this many seconds at once."""
    per_pool: Rate = field(default_factory=Rate)
    """Limit for each pool, for reads from it and writes to it together."""
    per_target: Rate = field(default_factory=Rate)
    """Limit for each target that files are read from."""
    pools: dict[str, Rate] = field(default_factory=dict)
    """Pools with a rate of their own, by name."""


@dataclass(frozen=True)
class GeneralLimits(Limits):
    """Limits of all moves, of every scope."""

    max_stream_loss: Annotated[float, Gt(0), Le(1)] = 0.02
    """Maximum part of its throughput that a stream loses to moves of ``imbalance`` and ``cold-on-flash``."""


@dataclass(frozen=True)
class ClaimSettings(Table):
    """Folder and expiry of the claim."""

    folder: Annotated[str, text_like(r"(?!(?:.*/)?\.\.?(?:/|$)).*[^/].*", "name a folder of its own")] = "/.tierd"
    """Path below the root of the file system, for root only. All its tierd daemons must use the same folder."""
    expiry_seconds: Annotated[Seconds, Ge(10)] = 45.0
    """Another tierd takes over a claim that was not renewed for this time. Its holder stops after half of it."""


@dataclass(frozen=True)
class DrainSettings(Table):
    """How ``tierctl drain-target`` finds and moves files."""

    scan_files_per_second: Annotated[float, Gt(0)] = 500.0
    """Maximum number of directory entries examined per second. Each takes about one request to an MDT."""
    reserve: Annotated[float, Ge(0), Lt(1)] = 0.05
    """Share of each other target that stays free."""
    retry_seconds: Annotated[float, Ge(0)] = 60.0
    """Time between two walks, for files that are in use."""
    max_stream_loss: Annotated[float, Gt(0), Le(1)] = 0.05
    """Maximum part of its throughput that a stream loses to drains. 1: moves do not wait for streams."""


@dataclass(frozen=True)
class MoverSettings(Table):
    """The engine of moves, and its limits."""

    engine: Literal["lfs", "lease"] = "lfs"
    """``lfs`` runs ``lfs migrate --non-block``; ``lease`` does the same in this process."""
    lfs: str = "lfs"
    """Name or path of the program ``lfs``."""
    library: str = "liblustreapi.so.1"
    """The shared library of Lustre, for ``lease``. A name without a path is searched as the dynamic linker does."""
    timeout_seconds: Seconds = 600.0
    """Time after which a process of ``lfs`` is killed. Its unfinished files stay as they were."""
    at_once: Annotated[int, Ge(1)] = 4
    """Engines that run at the same time. A file waits for loaded targets most of its time, so one engine moves little.
    Each process of ``lfs`` has a buffer of 64 MiB."""
    per_target_at_once: Annotated[int, Ge(1)] = 2
    """Engines that may read from or write to one target at the same time, on average over the targets of a pool."""
    keep_free: Annotated[float, Ge(0), Lt(1)] = 0.05
    """Share of a destination pool that moves leave free."""


class Mode(StrEnum):
    """Which acts tierd does on its own. The values are the words of the configuration and of ``tierctl``."""

    OBSERVE = "observe"
    """None: findings are reported."""
    ASK = "ask"
    """Those that an administrator approves with ``tierctl apply``."""
    NEW_FILES_ONLY = "new-files-only"
    """Default layouts are set. No file is moved."""
    FULL = "full"
    """Default layouts are set, and files are moved."""


@dataclass(frozen=True)
class ActSettings(Table):
    """Acts that tierd may do, and when."""

    dry_run: Annotated[bool, Strict()] = True
    """Plan and check everything, and change nothing."""
    mode: Mode = Mode.FULL
    """Scopes may have modes of their own."""
    pause_file: WholePathOrNone = "/var/lib/tierd/pause"
    """While this file exists, tierd changes and undoes nothing, and status shows its first line. "": not used."""
    windows: tuple[Annotated[str, AfterValidator(valid_window)], ...] = ()
    """Hours in which changes may be made, in local time: ``Mon-Fri 20:00-06:00``. Empty: at any time."""
    on: tuple[str, ...] = field(default_factory=acted_on_by_default)
    """Kinds of findings that are acted on; the others are only reported. ``data-on-mdt`` allows tierd to place small
    files on the MDT instead of flash, where that is better, and ``mirror-on-flash`` mirrors instead of moves."""
    without_user_xattr: Annotated[bool, Strict()] = False
    """Act although the mount has no ``user_xattr``, so that only opt-outs other than ``user.tierd`` can be read."""
    brake: Annotated[bool, Strict()] = False
    """Slow a job that certainly slows a stream, with TBF rules that an agent on each OSS sets."""
    journal: WholePath = "/var/lib/tierd/journal.sqlite"
    socket: WholePath = "/run/tierd/tierd.sock"
    """Control socket, which tierctl uses."""


def mode_allows(mode: Mode, kind: ActKind) -> bool:
    """Whether tierd plans to do acts of this kind in a mode. In mode ``ask`` each finding needs an approval too."""
    return mode in {Mode.FULL, Mode.ASK} or (mode == Mode.NEW_FILES_ONLY and kind in {ActKind.SET_DEFAULT_LAYOUT,
                                                                          ActKind.SET_DEFAULT_STRIPING})
