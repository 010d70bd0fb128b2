"""Maintenance windows: the hours of the week in which tierd may change something, in this node's local time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MINUTES_A_DAY = 24 * 60
_FORM = re.compile(r"(?:(?P<days>[A-Za-z,\-]+)\s+)?(?P<begin>\d\d?:\d\d)-(?P<end>\d\d?:\d\d)")


@dataclass(frozen=True, slots=True)
class Window:
    """Days on which it begins (0 is Monday), and minutes after midnight. An end before the begin is on the next day."""

    days: frozenset[int]
    begin_minutes: int
    end_minutes: int

    def holds(self, weekday: int, minutes: int) -> bool:
        """Whether a minute of the week lies in it."""
        if self.begin_minutes < self.end_minutes:
            return weekday in self.days and self.begin_minutes <= minutes < self.end_minutes
        yesterday = (weekday - 1) % 7
        return (weekday in self.days and minutes >= self.begin_minutes) or (
            yesterday in self.days and minutes < self.end_minutes)


def parse(text: str) -> Window:
    """A window as it is written in the configuration. Raises ValueError that says how.

    >>> window = parse("Mon-Fri 20:00-06:00")
    >>> window.holds(4, 23 * 60), window.holds(5, 5 * 60), window.holds(5, 23 * 60)
    (True, True, False)
    >>> parse("Sat,Sun 00:00-24:00").holds(6, 0), parse("22:00-04:00").holds(2, 60)
    (True, True)
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"not a maintenance window: {text!r}; write 'Mon-Fri 20:00-06:00', 'Sat,Sun 00:00-24:00' "
                         "or '22:00-04:00'")
    begin, end = _minutes(found["begin"], text), _minutes(found["end"], text)
    if begin == end:
        raise ValueError(f"maintenance window {text!r} begins when it ends; the whole day is 00:00-24:00")
    return Window(_days(found["days"], text), begin % _MINUTES_A_DAY, end)


def closed(windows: tuple[str, ...], now: float) -> str:
    """Why nothing may be changed at this time (epoch seconds), or "". Without windows it always may."""
    local = datetime.fromtimestamp(now).astimezone()
    if not windows or any(parse(w).holds(local.weekday(), local.hour * 60 + local.minute) for w in windows):
        return ""
    return f"outside of the maintenance windows ({'; '.join(windows)}; it is {local:%a %H:%M})"


def checked(text: str) -> str:
    """The text, if it is a window. For settings."""
    parse(text)
    return text


def _days(words: str | None, text: str) -> frozenset[int]:
    if words is None:
        return frozenset(range(7))
    found: set[int] = set()
    for part in words.split(","):
        names = [name.capitalize() for name in part.split("-")]
        if not 1 <= len(names) <= 2 or any(name not in DAYS for name in names):
            raise ValueError(f"maintenance window {text!r}: {part!r} is no day; days are {', '.join(DAYS)}")
        first, last = DAYS.index(names[0]), DAYS.index(names[-1])
        found.update((first + n) % 7 for n in range((last - first) % 7 + 1))
    return frozenset(found)


def _minutes(clock: str, text: str) -> int:
    hours, minutes = map(int, clock.split(":"))
    if minutes > 59 or hours * 60 + minutes > _MINUTES_A_DAY:
        raise ValueError(f"maintenance window {text!r}: {clock} is no time of day")
    return hours * 60 + minutes
