"""Two streams share the bandwidth of targets. Flash for small files does not help: advice only."""

from __future__ import annotations

from collections.abc import Iterator

from tierd.detect.noisy_neighbour.baseline import SlowdownSettings
from tierd.detect.noisy_neighbour.pairs import SlowdownDetector, SlowdownView
from tierd.detect.noisy_neighbour.slowdown import slowdowns
from tierd.model import Finding, SlowdownEvidence


def detect(view: SlowdownView, settings: SlowdownSettings) -> Iterator[Finding]:
    """Streams that slowed down since another stream came to the same targets."""
    for slow in slowdowns(view, view.streams, view.streams, DETECTOR.name, settings):
        other = slow.other
        others = {target for window in view.recent for target, _ in window.loads} - set(slow.targets)
        mend = "other targets for one of the two would help, " if others else ""
        yield Finding(
            DETECTOR.name, view.now, other.job, slow.victim.job, slow.targets,
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


DETECTOR = SlowdownDetector("shared-bandwidth", detect)
