"""Panels and colours more than one dashboard has."""

from __future__ import annotations

from dashboards.dashboard import Annotation
from dashboards.panels import GREEN, ORANGE, RED, YELLOW, Query, Steps

FULL: Steps = ((None, GREEN), (0.8, YELLOW), (0.9, ORANGE), (0.95, RED))
"""Fullness of targets and pools, as the alerts have it."""
ANY_IS_BAD: Steps = ((None, GREEN), (1, RED))
ANY_IS_NOTED: Steps = ((None, GREEN), (1, YELLOW))
LOW_IS_BAD: Steps = ((None, RED), (0.5, ORANGE), (0.8, GREEN))

ALERTS = 'ALERTS{alertname=~"(Lustre|Tierd).*", alertstate="firing", severity=~"critical|warning"}'


def firing() -> Query:
    """How many alerts of this set fire."""
    return Query(f"count({ALERTS}) or vector(0)")


def events() -> tuple[Annotation, ...]:
    """What tierd did, on the time axis. A gauge holds the last of its kind only: counters say how many there were."""
    def event(name: str, label: str, colour: str, text: str) -> Annotation:
        return Annotation(name, f'(tierd_last_event_timestamp_seconds{{event="{label}"}} > 0) * 1000', colour, text)

    return (
        event("Finding", "finding", "orange", "a noisy neighbour was found"),
        event("Default layout", "default-layout", "blue", "a directory's new files go elsewhere from now on"),
        event("Move", "move", "green", "files were moved"),
        event("Undo", "undo", "purple", "an act was taken back"),
        event("Failure", "failure", "red", "an act failed"),
    )
