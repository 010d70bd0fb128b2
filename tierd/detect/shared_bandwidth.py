"""Two streams share targets and each gets a part: this is fair, and flash would not help. Advice only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tierd.detect.noisy_neighbour.baseline import Settings
from tierd.detect.noisy_neighbour.pairs import SlowdownView, slowdown_view
from tierd.detect.noisy_neighbour.slowdown import slowdowns
from tierd.detect.profile import is_stream
from tierd.model import Finding, SlowdownEvidence, Window

KIND = "shared-bandwidth"


def detect(windows: Sequence[Window], settings: Settings, active: Collection[tuple[str, str, str]] = (),
           at: SlowdownView | None = None) -> Iterator[Finding]:
    """Streams slowed since another stream came to the same targets."""
    if not windows:
        return
    at = at or slowdown_view(windows, settings)
    streams = [p for p in at.jobs.values() if is_stream(p, settings.classes)]
    for slow in slowdowns(at, streams, streams, KIND, active, settings):
        other = slow.other
        others = {target for window in at.recent for target, _ in window.loads} - set(slow.targets)
        mend = "other targets for one of the two would help, " if others else ""
        yield Finding(
            KIND, windows[-1].end, other.job, slow.victim.job, slow.targets,
            f"{slow.victim.job} streams at {slow.now / 1e6:.1f} MB/s instead of {slow.usual / 1e6:.1f} MB/s since "
            f"{other.job} streams to the same {len(slow.targets)} targets at "
            f"{other.moved_bytes / other.seconds / 1e6:.1f} MB/s; "
            f"{mend}flash for small files would not",
            SlowdownEvidence(
                victim_usual_bytes_per_second=slow.usual, victim_bytes_per_second=slow.now, slowdown=slow.factor,
                quiet_windows=len(slow.course.quiet), contended_windows=len(slow.course.contended),
                learnt_windows=slow.learnt_windows),
            advice_only=True,
        )
