"""Two streams share targets and each gets a part: fair, and nothing a layout on flash would mend. Advice only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from statistics import median

from tierd.detect.baseline import series
from tierd.detect.noisy_neighbour import Settings, shared_targets, slowed
from tierd.detect.profile import is_stream, profiles
from tierd.model import Finding, Window

KIND = "shared-bandwidth"


def detect(windows: Sequence[Window], settings: Settings,
           active: Collection[tuple[str, str, str]] = ()) -> Iterator[Finding]:
    """Streams slowed since another stream came to the same targets."""
    if not windows:
        return
    recent = [w for w in windows if w.end > windows[-1].end - settings.recent_seconds]
    streams = [p for p in profiles(recent).values() if is_stream(p, settings.classes)]
    for victim in streams:
        for other in streams:
            if other is victim:
                continue
            targets = shared_targets(victim, other, windows[-1], settings.target_share)
            edge = settings.leave if (KIND, other.job, victim.job) in active else settings.enter
            course = series(windows, victim.job, other.job, targets, settings.presence)
            if targets and slowed(course, len(recent), edge, settings):
                usual, now = median(course.quiet), median(course.contended)
                yield Finding(
                    KIND, windows[-1].end, other.job, victim.job, targets,
                    f"{victim.job} streams at {now / 1e6:.1f} MB/s instead of {usual / 1e6:.1f} MB/s since "
                    f"{other.job} streams to the same {len(targets)} targets at "
                    f"{other.moved_bytes / other.seconds / 1e6:.1f} MB/s; "
                    "other targets for one of the two would help, flash for small files would not",
                    {"victim_usual_bytes_per_second": usual, "victim_bytes_per_second": now,
                     "slowdown": usual / now if now else float("inf")},
                    advice_only=True,
                )
