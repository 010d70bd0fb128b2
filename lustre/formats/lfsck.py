r"""LFSCK and OI scrub: checks of the whole file system, and the scan of a target's object index.

LFSCK: ``mdd.*.lfsck_namespace``, ``mdd.*.lfsck_layout``, ``obdfilter.*.lfsck_layout``.

Layout and namespace checks share one form, from 2.12 to 2.17, but count different problems. A layout check prints::

    name: lfsck_layout
    magic: 0xb1732fed
    version: 2
    status: completed
    flags:
    param: all_targets,broadcast,orphan
    last_completed_time: 1795210800
    time_since_last_completed: 7676 seconds
    latest_start_time: 1795210200
    time_since_latest_start: 8276 seconds
    last_checkpoint_time: 1795210800
    time_since_last_checkpoint: 7676 seconds
    latest_start_position: 77
    last_checkpoint_position: 6402049
    first_failure_position: 2107
    success_count: 2
    repaired_dangling: 5
    repaired_unmatched_pair: 0
    repaired_multiple_referenced: 0
    repaired_orphan: 7
    repaired_inconsistent_owner: 1
    repaired_others: 0
    skipped: 0
    failed_phase1: 0
    failed_phase2: 1
    checked_phase1: 48210
    checked_phase2: 7
    run_time_phase1: 580 seconds
    run_time_phase2: 20 seconds

Speeds and a position follow. A namespace check prints the action after the problem (``dangling_repaired``), and also
prints the number of repairs (``updated_phase1``, ``updated_phase2``). A dry run prints ``inconsistent`` instead of
``repaired``, ``updated`` or ``cleared``. The numbers belong to the current run, or to the last one: a run that
continues after a restart continues to count, a new run begins at zero. Only ``success_count`` covers all runs.

OI scrub: ``osd-*.*.oi_scrub``, with one form from 2.12 to 2.17, on ldiskfs and ZFS::

    name: OI_scrub
    magic: 0x4c5fe253
    oi_files: 64
    status: completed
    flags:
    param:
    time_since_last_completed: 86405 seconds
    time_since_latest_start: 86462 seconds
    time_since_last_checkpoint: 86405 seconds
    latest_start_position: 12
    last_checkpoint_position: 6402049
    first_failure_position: N/A
    checked: 1204413
    updated: 17
    failed: 0
    prior_updated: 2
    noscrub: 0
    igif: 0
    success_count: 3
    run_time: 57 seconds
    average_speed: 21130 objects/sec
    real_time_speed: N/A
    current_position: N/A

The numbers belong to the current run, or to the last one: a run that continues after a restart continues to count, a
new run begins at zero. Only ``success_count`` covers all runs; it is stored on disk. A dry run prints ``inconsistent``
instead of ``updated``. An object that is repaired early because it was accessed counts only as ``prior_updated``.

>>> check = parse(b"name: lfsck_layout\nstatus: scanning-phase2\nflags: scanned-once,inconsistent\n"
...               b"latest_start_time: 1795210200\nrepaired_dangling: 5\nrepaired_orphan: 7\nskipped: 0\n"
...               b"failed_phase1: 2\nchecked_phase1: 48210\n")
>>> check.status, check.flags, check.started, check.repaired
(b'scanning-phase2', (b'scanned-once', b'inconsistent'), 1795210200, 12)
>>> check.problems, check.failed, check.checked
(((b'dangling', 5), (b'orphan', 7)), ((b'1', 2),), ((b'1', 48210),))
>>> scrub = parse_oi_scrub(b"status: scanning\nflags: inconsistent,auto\nchecked: 90\nupdated: 3\nfailed: 1\n"
...                        b"prior_updated: 2\nsuccess_count: 4\nrun_time: 57 seconds\n")
>>> scrub.status, scrub.flags, scrub.checked, scrub.repaired, scrub.inconsistent, scrub.completed, scrub.run_seconds
(b'scanning', (b'inconsistent', b'auto'), 90, 5, None, 4, 57)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lustre.formats import fields, header

STATES = frozenset({
    b"init", b"scanning-phase1", b"scanning-phase2", b"completed", b"failed", b"stopped", b"paused", b"crashed",
    b"partial", b"co-failed", b"co-stopped", b"co-paused",
})  # fmt: skip
_OF_LAYOUT = re.compile(rb"(?:repaired|inconsistent)_(?!phase)([a-z_]++)")
_OF_NAMES = re.compile(rb"([a-z_]+)_(?:repaired|cleared|inconsistent|inconsistency)")
_AFTER_LAYOUTS_PROBLEMS = b"skipped"
_PHASES = b"1", b"2"
Phases = tuple[tuple[bytes, int], ...]
"""Names of phases, each with its count or time."""


@dataclass(frozen=True, slots=True)
class Lfsck:
    """A check of one target; None or empty for fields that are not printed."""

    status: bytes
    flags: tuple[bytes, ...]
    started: int | None
    """Seconds since the epoch."""
    ended: int | None
    """End of the last complete run, in seconds of the epoch."""
    completed: int | None
    """Number of complete runs since the target was formatted."""
    checked: Phases
    failed: Phases
    run_seconds: Phases
    repaired: int | None
    inconsistent: int | None
    """Problems found by a dry run, which repairs nothing."""
    problems: tuple[tuple[bytes, int], ...]
    """Number of problems by kind, repaired or not, for kinds that were found at least once."""
    skipped: int


def parse(data: bytes) -> Lfsck:
    everything = fields.parse(data)
    found = everything.values
    numbers = fields.Naturals(found)
    status = found.get(b"status", b"")

    def phases(name: bytes) -> Phases:
        known = [(phase, numbers.get(name + b"_phase" + phase)) for phase in _PHASES]
        return tuple([(phase, number) for phase, number in known if number is not None])

    return Lfsck(
        status=status if status in STATES else b"",
        flags=fields.words(found.get(b"flags")),
        started=numbers.get(b"latest_start_time"),
        ended=numbers.get(b"last_completed_time"),
        completed=numbers.get(b"success_count"),
        checked=phases(b"checked"),
        failed=phases(b"failed"),
        run_seconds=phases(b"run_time"),
        repaired=_repairs(found, numbers, b"repaired", b"updated"),
        inconsistent=_repairs(found, numbers, b"inconsistent", b"inconsistent"),
        problems=tuple(dict(_problems(found, numbers)).items()),
        skipped=header.skipped_lines(data, everything.understood)
        + numbers.refused
        + (b"status" in found and status not in STATES),
    )


def _problems(found: dict[bytes, bytes], numbers: fields.Naturals) -> Iterator[tuple[bytes, int]]:
    for name in reversed(found):  # in the order of the file
        if of_layout := _OF_LAYOUT.fullmatch(name):
            problem = of_layout[1]
        elif of_names := _OF_NAMES.fullmatch(name):
            problem = of_names[1]
        else:
            continue
        if count := numbers.get(name):
            yield problem, count


def _repairs(found: dict[bytes, bytes], numbers: fields.Naturals, of_layout: bytes, of_names: bytes) -> int | None:
    """Return the number of repairs: the sum over all kinds of a layout check; a namespace check prints it itself."""
    if _AFTER_LAYOUTS_PROBLEMS in found:
        return numbers.sum(*[name for name in found if name.startswith(of_layout + b"_") and b"_phase" not in name])
    return numbers.sum(*[of_names + b"_phase" + phase for phase in _PHASES])


OI_SCRUB_STATES = frozenset({b"init", b"scanning", b"completed", b"failed", b"stopped", b"paused", b"crashed"})


@dataclass(frozen=True, slots=True)
class OiScrub:
    """The OI scrub of one target; None or empty for fields that are not printed."""

    status: bytes
    flags: tuple[bytes, ...]
    since_completed_seconds: int | None
    since_started_seconds: int | None
    checked: int | None
    repaired: int | None
    inconsistent: int | None
    """Problems found by a dry run, which repairs nothing."""
    failed: int | None
    completed: int | None
    """Number of complete runs since the target was formatted."""
    run_seconds: int | None
    skipped: int


def parse_oi_scrub(data: bytes) -> OiScrub:
    everything = fields.parse(data)
    numbers = fields.Naturals(everything.values)
    status = everything.values.get(b"status", b"")
    return OiScrub(
        status=status if status in OI_SCRUB_STATES else b"",
        flags=fields.words(everything.values.get(b"flags")),
        since_completed_seconds=numbers.get(b"time_since_last_completed"),
        since_started_seconds=numbers.get(b"time_since_latest_start"),
        checked=numbers.get(b"checked"),
        repaired=numbers.sum(b"updated", b"prior_updated"),
        inconsistent=numbers.sum(b"inconsistent", b"prior_inconsistent"),
        failed=numbers.get(b"failed"),
        completed=numbers.get(b"success_count"),
        run_seconds=numbers.get(b"run_time"),
        skipped=header.skipped_lines(data, everything.understood)
        + numbers.refused
        + (b"status" in everything.values and status not in OI_SCRUB_STATES),
    )
