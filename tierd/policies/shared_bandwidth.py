"""A stream gets less because another stream uses the same targets. tierd only reports it: no layout helps."""

from __future__ import annotations

from collections.abc import Iterator

from tierd.detect.view import SlowdownSettings, SlowdownView, slowdown_numbers, slower
from tierd.model import Finding, SlowdownEvidence
from tierd.policies.protocol import Policy
from tierd.text import count_of, rate_text


def find_slowed(view: SlowdownView, settings: SlowdownSettings) -> Iterator[Finding]:
    for loss, victim, other, targets in view.found(view.rival_losses, POLICY.name, settings):
        shared = len(other.by_target.keys() & {*targets})
        remedy = "" if set(view.targets) <= set(targets) else "other targets for one of the two jobs would help; "
        yield Finding(
            POLICY.name, view.now, other.job, victim, targets,
            f"{slower(victim, loss)} since {other.job} streams to the same {count_of(shared, 'target')} at "
            f"{rate_text(other.total.moved_bytes / other.seconds)}; {remedy}flash for small files would not help",
            SlowdownEvidence(**slowdown_numbers(loss, settings)), advice_only=True)


POLICY = Policy("shared-bandwidth", find_slowed=find_slowed, evidence=SlowdownEvidence)
