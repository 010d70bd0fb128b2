"""Two streams share the bandwidth of targets. tierd only reports this, because flash for small files does not help."""

from __future__ import annotations

from collections.abc import Iterator

from tierd.detect.noisy_neighbour.baseline import SlowdownSettings
from tierd.detect.noisy_neighbour.pairs import SlowdownDetector, SlowdownView
from tierd.detect.noisy_neighbour.slowdown import slowdowns
from tierd.model import Finding, SlowdownEvidence
from tierd.text import count_of, rate_text


def detect(view: SlowdownView, settings: SlowdownSettings) -> Iterator[Finding]:
    """Find streams that slowed down since another stream started on the same targets."""
    for slow in slowdowns(view, view.streams, view.streams, DETECTOR.name, settings):
        other = slow.other
        others = view.on.keys() - set(slow.targets)
        mend = "other targets for one of the two jobs would help; " if others else ""
        yield Finding(
            DETECTOR.name, view.now, other.job, slow.victim.job, slow.targets,
            f"{slow.victim.job} streams at {rate_text(slow.now)} instead of {rate_text(slow.usual)} since "
            f"{other.job} streams to the same {count_of(len(slow.targets), 'target')} at "
            f"{rate_text(other.moved_bytes / other.seconds)}; {mend}flash for small files would not help",
            SlowdownEvidence(
                victim_usual_bytes_per_second=slow.usual, victim_bytes_per_second=slow.now, slowdown=slow.factor,
                quiet_windows=len(slow.course.quiet), contended_windows=len(slow.course.contended),
                learnt_windows=slow.learnt_windows),
            advice_only=True,
        )


DETECTOR = SlowdownDetector("shared-bandwidth", detect)
