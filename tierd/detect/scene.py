"""What happened of late as detectors of slowness look at it: windows, profiles of jobs, tracks, who is where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tierd.detect.pairs import Asked, asked
from tierd.detect.profile import Profile, profiles
from tierd.detect.thresholds import Settings
from tierd.detect.tracks import Tracks
from tierd.model import Window


@dataclass(frozen=True, slots=True)
class Scene:
    """The history as detectors of slowness look at it; made once a cycle."""

    windows: Sequence[Window]
    recent: Sequence[Window]
    jobs: Mapping[str, Profile]
    """What each job is like of late."""
    tracks: Tracks
    on: Mapping[str, Sequence[Profile]] = field(repr=False)
    """Who did something on a target of late."""
    slow: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)
    """What ``may_be_slow`` has said: several detectors ask for the same."""
    asked: dict[str, Asked] = field(default_factory=dict, compare=False, repr=False)
    """What jobs ask for of late, as far as it was looked up."""

    def asked_by(self, job: Profile) -> Asked:
        """What a job asks for of late, by target."""
        known = self.asked.get(job.job)
        if known is None:
            known = self.asked[job.job] = asked(job)
        return known


def scene(windows: Sequence[Window], settings: Settings, before: Tracks | None = None) -> Scene:
    """The scene of the newest window, of which there must be one. ``before`` are the tracks of the cycle before."""
    recent = [w for w in windows if w.end > windows[-1].end - settings.recent_seconds]
    jobs = profiles(recent)
    on: defaultdict[str, list[Profile]] = defaultdict(list)
    for each in jobs.values():
        for target in each.by_target:
            on[target].append(each)
    return Scene(windows, recent, jobs, Tracks(windows, before), on)
