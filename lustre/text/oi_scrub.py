r"""The scan of a target's object index: ``osd-*.*.oi_scrub``. The same from 2.12 to 2.17, on ldiskfs and ZFS::

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

The numbers are those of the run under way, or of the last one: a run that goes on after a restart goes on counting, a
new one begins at zero. ``success_count`` alone is of all runs; it is kept on disk. A dry run says ``inconsistent`` in
place of ``updated``. What is mended because somebody wants it just then counts as ``prior``, and only there.

>>> scrub = parse(b"status: scanning\nflags: inconsistent,auto\nchecked: 90\nupdated: 3\nfailed: 1\n"
...               b"prior_updated: 2\nsuccess_count: 4\nrun_time: 57 seconds\n")
>>> scrub.status, scrub.flags, scrub.checked, scrub.repaired, scrub.inconsistent, scrub.completed, scrub.run_seconds
(b'scanning', (b'inconsistent', b'auto'), 90, 5, None, 4, 57)
"""

from __future__ import annotations

from dataclasses import dataclass

from lustre.text import fields, header

STATES = frozenset({b"init", b"scanning", b"completed", b"failed", b"stopped", b"paused", b"crashed"})


@dataclass(frozen=True, slots=True)
class OiScrub:
    """One target's index; None, or empty, for what is not printed or not known."""

    status: bytes
    flags: tuple[bytes, ...]
    since_completed_seconds: int | None
    since_started_seconds: int | None
    checked: int | None
    repaired: int | None
    inconsistent: int | None
    """Found by a dry run, which repairs nothing."""
    failed: int | None
    completed: int | None
    """Runs that came to their end, ever."""
    run_seconds: int | None
    skipped: int


def parse(data: bytes) -> OiScrub:
    """Read a whole ``oi_scrub`` file."""
    everything = fields.parse(data)
    numbers = fields.Naturals(everything.values)
    status = everything.values.get(b"status", b"")
    return OiScrub(
        status=status if status in STATES else b"",
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
        + (b"status" in everything.values and status not in STATES),
    )
