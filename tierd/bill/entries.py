"""Entries of the bill: one for each case and day. They are values of the journal's table ``state``, kept for a year."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tierd.structs import Struct, json_text

if TYPE_CHECKING:
    from tierd.act.journal.writer import Journal
    from tierd.detect.account import Lost

DAY_SECONDS = 86400
KEEP_DAYS = 366
_PREFIX = "bill "


class BillEntry(Struct, frozen=True, kw_only=True):
    """What a job cost a stream in one case on one day (UTC)."""

    finding: int
    begun_at: float
    """Epoch seconds of the first window of the day."""
    ended_at: float
    aggressor: str
    victim: str
    lost_bytes: float
    low_bytes: float
    """Low and high hold ``lost_bytes`` with a probability of nine tenths."""
    high_bytes: float
    lost_seconds: float
    """Time that the stream would have needed for these bytes alone."""
    aggressor_user: str = ""
    aggressor_project: str = ""
    """Account of the scheduler; empty where it is not known."""
    victim_user: str = ""
    victim_project: str = ""


class BillAnswer(Struct, frozen=True, kw_only=True):
    """The entries of a period."""

    since: float
    until: float
    entries: tuple[BillEntry, ...] = ()
    """All in which the stream certainly lost something."""
    jobs: tuple[str, ...] = ()
    """Job ids of Lustre that were asked for; empty for all."""
    uncertain: int = 0
    """Number of further cases, in which it may have lost nothing. They are not billed."""


def day_of(time: float) -> int:
    return int(time // DAY_SECONDS)


def store(journal: Journal, entries: Sequence[BillEntry]) -> None:
    """Store entries, in place of those of the same case that began at the same time."""
    journal.set_state({f"{_PREFIX}{day_of(each.begun_at):06} {each.finding} {each.begun_at:.3f}":
                       json_text({name: getattr(each, name) for name in BillEntry.__struct_fields__})
                       for each in entries})


def stored(journal: Journal, since: float, until: float) -> Iterator[BillEntry]:
    """The entries of a period. An invalid one is left out: another release may have written it."""
    rows = journal.db.execute("SELECT value FROM state WHERE name >= ? AND name < ? ORDER BY name",
                              (f"{_PREFIX}{day_of(since):06}", f"{_PREFIX}{day_of(until) + 1:06}"))
    for (value,) in rows:
        try:
            entry = BillEntry.from_json(json.loads(value))
        except ValueError:
            continue
        if entry.ended_at >= since and entry.begun_at <= until:
            yield entry


def remove_old(journal: Journal, now: float) -> None:
    journal.db.execute("DELETE FROM state WHERE name >= ? AND name < ?",
                       (_PREFIX, f"{_PREFIX}{max(0, day_of(now) - KEEP_DAYS):06}"))


def answer(entries: Sequence[BillEntry], since: float, until: float, jobs: tuple[str, ...] = ()) -> BillAnswer:
    wanted = [each for each in entries if not jobs or each.aggressor in jobs or each.victim in jobs]
    certain = tuple(each for each in wanted if each.low_bytes > 0)
    return BillAnswer(since=since, until=until, entries=certain, jobs=jobs, uncertain=len(wanted) - len(certain))


def ids_of(journal: Journal, job: str, user: str = "") -> tuple[str, ...]:
    """Lustre's job ids of a job, which may be given by its number in the scheduler, and its user; empty for no job."""
    known = journal.db.execute("SELECT job FROM scheduler_jobs WHERE number = ? AND ? IN ('', user)",
                               (int(job), user)) if job.isascii() and job.isdigit() and len(job) < 18 else []
    return (job, *(name for (name,) in known if name != job)) if job else ()


def by_case(entries: Sequence[BillEntry]) -> list[Lost]:
    """What was lost in each case, on all days: its days have one b, so their errors add up."""
    from tierd.detect.account import Lost  # noqa: PLC0415 -- slow to load: a scheduler asks for each job

    found: dict[int, Lost] = {}
    for entry in entries:
        so_far = found.get(entry.finding, Lost())
        found[entry.finding] = Lost(so_far.bytes + entry.lost_bytes, so_far.low_bytes + entry.low_bytes,
                                    so_far.high_bytes + entry.high_bytes, so_far.seconds + entry.lost_seconds)
    return list(found.values())


Sides = Mapping[str, tuple[list[BillEntry], list[BillEntry]]]


def by_side(entries: Sequence[BillEntry], by: str) -> Sides:
    """The entries of each job, user or project: those in which it cost others something, and those in which it lost."""
    found: dict[str, tuple[list[BillEntry], list[BillEntry]]] = {}
    for entry in entries:
        for side, who in enumerate(("aggressor", "victim")):
            name = getattr(entry, who if by == "job" else f"{who}_{by}")
            found.setdefault(name or f"(no {by} known)", ([], []))[side].append(entry)
    return found
