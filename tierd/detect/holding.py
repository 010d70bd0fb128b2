"""A neighbour that stays for long: what its victim got before is remembered in half minutes, and at last not at all.

Then nothing can be measured anew. That is no reason to say that it is over: a finding goes on, as it was measured last,
while the aggressor is at work beside the victim and the victim gets no more than it did.
"""

from __future__ import annotations

from dataclasses import replace

from tierd.detect.baseline import series
from tierd.detect.scene import Scene
from tierd.detect.thresholds import Settings
from tierd.model import Finding


def outlasting(finding: Finding, at: Scene, settings: Settings) -> Finding | None:
    """The finding, as of now, where too little is remembered to judge it anew; None when it can be judged, or is over.

    ``finding`` is one that the rules of :mod:`tierd.detect.slowdown` found in the cycle before, and not in this one.
    """
    usual = finding.evidence.get("victim_usual_bytes_per_second", 0.0)
    window = at.windows[-1]
    both, ill = {finding.victim, finding.aggressor}, window.conditions.keys()
    if not usual or not both <= at.jobs.keys() or not ill.isdisjoint(finding.targets):
        return None
    course = series(at.tracks, finding.victim, finding.aggressor, finding.targets, settings.presence)
    least = settings.least_windows
    if len(course.quiet) >= least or len(course.contended) < least or course.now(least) > settings.leave * usual:
        return None
    return replace(finding, time=window.end)
