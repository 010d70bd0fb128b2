"""Panels and colours more than one dashboard has."""

from __future__ import annotations

from dashboards.dashboard import Annotation
from dashboards.panels import GREEN, ORANGE, RED, YELLOW, Query, Steps

FULL: Steps = ((None, GREEN), (0.8, YELLOW), (0.9, ORANGE), (0.95, RED))
"Usage of targets and pools, with the thresholds of the alerts."
ANY_IS_BAD: Steps = ((None, GREEN), (1, RED))
ANY_IS_NOTED: Steps = ((None, GREEN), (1, YELLOW))
LOW_IS_BAD: Steps = ((None, RED), (0.5, ORANGE), (0.8, GREEN))

ALERTS = 'ALERTS{alertname=~"(Lustre|Tierd).*", alertstate="firing", severity=~"critical|warning"}'


def firing() -> Query:
    """How many alerts of this set fire."""
    return Query(f"count({ALERTS}) or vector(0)")


def events() -> tuple[Annotation, ...]:
    """Acts of tierd as marks on the time axis. Each gauge holds the last event of its kind only; counters have the"""
    " totals."
    def event(name: str, label: str, colour: str, text: str) -> Annotation:
        return Annotation(name, f'(tierd_last_event_timestamp_seconds{{event="{label}"}} > 0) * 1000', colour, text)

    return (
        event("Finding", "finding", "orange", "noisy neighbour found"),
        event("Default layout", "default-layout", "blue", "default layout of a directory set"),
        event("Move", "move", "green", "files moved"),
        event("Undo", "undo", "purple", "act undone"),
        event("Failure", "failure", "red", "act failed"),
    )
