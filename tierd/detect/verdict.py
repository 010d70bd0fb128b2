"""Whether the course of a stream shows that it is slow since another job came."""

from __future__ import annotations

from statistics import fmean

from tierd.detect.baseline import Series, lower_edge
from tierd.detect.thresholds import Settings, threshold

LIKE_SECONDS = 120.0
"""What others saw before our start are means over so long: as long a stay is compared with them, and no shorter one."""


def slowed(course: Series, held: bool, settings: Settings) -> bool:
    """Whether the victim has been slow in most windows of late, against what it got just before the other came.

    Of late is the second half of the other's stay: noise may build up, as when a directory fills.
    """
    quiet, contended = course.quiet, course.contended
    if len(quiet) < settings.least_windows or len(contended) < settings.least_windows:
        return False
    if course.learnt and course.contended_seconds < LIKE_SECONDS:
        return False
    usual, edge = course.usual(settings.before_windows), threshold(quiet[course.learnt_quiet:], held, settings)
    if course.learnt and fmean(course.own.contended) > edge * usual:
        return False  # single windows may be slow by chance: what they are compared with are means
    if course.now(settings.least_windows) > edge * usual:
        return False
    limit = min(edge * usual, lower_edge(quiet, edge))
    late = contended[-max(settings.least_windows, len(contended) // 2):]
    if fmean(late) > edge * course.usual_mean(settings.before_windows):
        return False  # a call more or less in a window makes a median, and of few windows it tells nothing
    if sum(rate <= limit for rate in late) < settings.slow_windows * len(late):
        return False
    return len(contended) < 2 * settings.least_windows or dose_fits(course, usual)


def dose_fits(course: Series, usual: float) -> bool:
    """Whether as much of the other did some harm early in its stay too.

    A victim that bore it well for long, and then got slow while the other did no more than before, got slow for
    another reason: a disk that fails, for instance.
    """
    (early, early_dose), (late, late_dose) = course.halves()
    return early_dose < late_dose / 2 or usual - early >= (usual - late) / 3
