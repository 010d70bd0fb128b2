r"""Checks of the whole file system: ``mdd.*.lfsck_namespace``, ``mdd.*.lfsck_layout``, ``obdfilter.*.lfsck_layout``.

One form, the same from 2.12 to 2.17, with problems of the one kind or the other; of a layout check::

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

and then speeds and a position. A check of names puts the word behind the problem (``dangling_repaired``) and tells
how much it mended (``updated_phase1``, ``updated_phase2``). Where the kernel says ``repaired``, ``updated`` or
``cleared``, a dry run says ``inconsistent``. The numbers are those of the run under way, or of the last one: a run
that goes on after a restart goes on counting, a new one begins at zero. ``success_count`` alone is of all runs.

>>> check = parse(b"name: lfsck_layout\nstatus: scanning-phase2\nflags: scanned-once,inconsistent\n"
...               b"latest_start_time: 1795210200\nrepaired_dangling: 5\nrepaired_orphan: 7\nskipped: 0\n"
...               b"failed_phase1: 2\nchecked_phase1: 48210\n")
>>> check.status, check.flags, check.started, check.repaired
(b'scanning-phase2', (b'scanned-once', b'inconsistent'), 1795210200, 12)
>>> check.problems, check.failed, check.checked
(((b'dangling', 5), (b'orphan', 7)), ((b'1', 2),), ((b'1', 48210),))
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lustre.text import fields, header

STATES = frozenset({
    b"init", b"scanning-phase1", b"scanning-phase2", b"completed", b"failed", b"stopped", b"paused", b"crashed",
    b"partial", b"co-failed", b"co-stopped", b"co-paused",
})  # fmt: skip
_OF_LAYOUT = re.compile(rb"(?:repaired|inconsistent)_(?!phase)([a-z_]++)")
_OF_NAMES = re.compile(rb"([a-z_]+)_(?:repaired|cleared|inconsistent|inconsistency)")
_AFTER_LAYOUTS_PROBLEMS = b"skipped"
_PHASES = b"1", b"2"
Phases = tuple[tuple[bytes, int], ...]
"""Each phase that is told of, and its number."""


@dataclass(frozen=True, slots=True)
class Lfsck:
    """One check of one target; None, or empty, for what is not printed or not known."""

    status: bytes
    flags: tuple[bytes, ...]
    started: int | None
    """Seconds since the epoch."""
    ended: int | None
    """When a run last came to its end, likewise."""
    completed: int | None
    """Runs that came to their end, ever."""
    checked: Phases
    failed: Phases
    run_seconds: Phases
    repaired: int | None
    inconsistent: int | None
    """Found by a dry run, which repairs nothing."""
    problems: tuple[tuple[bytes, int], ...]
    """What was found, and how often, repaired or not; those of which there was one."""
    skipped: int


def parse(data: bytes) -> Lfsck:
    """Read a whole ``lfsck_layout`` or ``lfsck_namespace`` file."""
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
        repaired=_mended(found, numbers, b"repaired", b"updated"),
        inconsistent=_mended(found, numbers, b"inconsistent", b"inconsistent"),
        problems=tuple(dict(_problems(found, numbers)).items()),
        skipped=header.skipped_lines(data, everything.understood)
        + numbers.refused
        + (b"status" in found and status not in STATES),
    )


def _problems(found: dict[bytes, bytes], numbers: fields.Naturals) -> Iterator[tuple[bytes, int]]:
    for name in reversed(found):  # as they stand in the file
        if of_layout := _OF_LAYOUT.fullmatch(name):
            problem = of_layout[1]
        elif of_names := _OF_NAMES.fullmatch(name):
            problem = of_names[1]
        else:
            continue
        if count := numbers.get(name):
            yield problem, count


def _mended(found: dict[bytes, bytes], numbers: fields.Naturals, of_layout: bytes, of_names: bytes) -> int | None:
    """All problems of a layout check, once all its lines are there; a check of names counts them itself."""
    if _AFTER_LAYOUTS_PROBLEMS in found:
        return numbers.sum(*[name for name in found if name.startswith(of_layout + b"_") and b"_phase" not in name])
    return numbers.sum(*[of_names + b"_phase" + phase for phase in _PHASES])
