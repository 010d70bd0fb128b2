"""One MDT is much fuller than the others, or does most of the metadata operations.

Directories stay on the MDT on which they were made, so one user's tree can fill one MDT while others are empty. A full
MDT stops every user. New directories can go to other MDTs at no cost; existing ones can be migrated, entry by entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tierd.detect.view import View
from tierd.model import Advice, Finding
from tierd.policies.protocol import Common, Policy, edge
from tierd.text import first_names, percent, quoted
from tierd.validators import NotNegative, Ratio, Share


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter_fill: Share = 0.3
    """The finding begins if an MDT's used share of bytes or inodes exceeds the median of the others by this. A choice,
    above the 17% from which Lustre evens out new directories."""
    enter_load: Ratio = 4.0
    """The finding begins at this ratio of an MDT's operations to the mean of the others. A choice."""
    min_operations_per_second: NotNegative = 1000.0
    """Minimum operations of the MDT. About 1% of the creates of one MDT in Cray's paper."""


def find(view: View, settings: Settings) -> Iterator[Finding]:
    known = view.facts.metadata
    used = {mdt: fill.used for mdt, fill in known.items()}
    for fullest, emptiest, rest in apart(used, view.facts.metadata_targets):
        others, subject = median(rest), f"fill of {fullest}"
        if used[fullest] - others >= edge(settings.enter_fill, view, POLICY.name, "", subject):
            yield POLICY.finding(
                view, f"{quoted(fullest)} is {percent(used[fullest])} full (bytes or inodes); the median of the other "
                f"MDTs is {percent(others)}",
                {"used_share": used[fullest], "others_used_share": others, "inodes_free": known[fullest].inodes_free},
                targets=(fullest,), subject=subject, advice=advice(fullest, emptiest))
    loads = {load.mdt: load for load in view.facts.metadata_loads}
    rates = {mdt: load.operations for mdt, load in loads.items()}
    for busiest, calmest, rest in apart(rates, view.facts.metadata_targets):
        others, subject = sum(rest) / len(rest), f"load of {busiest}"
        least = edge(settings.enter_load, view, POLICY.name, "", subject) * others
        if rates[busiest] >= max(settings.min_operations_per_second, least):
            yield POLICY.finding(
                view, f"{quoted(busiest)} does {rates[busiest]:.0f} operations/s; the other MDTs do {others:.0f} "
                "operations/s on average; the busiest jobs there are "
                f"{first_names(job for job, _ in loads[busiest].jobs)}",
                {"operations_per_second": rates[busiest], "others_operations_per_second": others},
                targets=(busiest,), subject=subject, advice=advice(busiest, calmest))


def apart(values: Mapping[str, float], targets: int) -> Iterator[tuple[str, str, Sequence[float]]]:
    """The MDT with most, the one with least, and what all but the first have; nothing while one of them is unknown."""
    if len(values) >= max(2, targets):
        most = max(sorted(values), key=lambda mdt: values[mdt])
        yield (most, min(sorted(values), key=lambda mdt: values[mdt]),
               [value for mdt, value in values.items() if mdt != most])


def advice(mdt: str, other: str) -> tuple[Advice, ...]:
    index = int(other[-4:], 16)
    return (
        Advice("lfs setdirstripe -D -c 1 -i -1 DIRECTORY", f"parents of large trees on {quoted(mdt)}",
               "new subdirectories go to the MDTs with most room, or in turn; existing ones stay. Before Lustre 2.13 "
               f"they stay on the MDT of the parent: lfs mkdir -i {index} makes one elsewhere"),
        Advice(f"lfs migrate -m {index} DIRECTORY", f"on a client, for a tree on {quoted(mdt)} in which no job works",
               f"moves the tree to {quoted(other)}: one request to the MDTs for each entry, which is locked meanwhile; "
               "every entry gets a new FID; of open files only the names move; files with a copy in an archive "
               "(HSM) are refused"),
    )


POLICY = Policy("metadata-imbalance", Settings, find)
