"""Readings of expositions, as of several exporters that answer at the same moment."""

from collections.abc import Sequence
from dataclasses import replace

from tests.tierd.sense.clocks import SettableClock
from tierd.sense.exporters import Answer, ExporterReadings
from tierd.sense.exposition import reading_of
from tierd.sense.readings import Reading


def reading(texts: Sequence[str | bytes], time: float, origins: Sequence[str] = ()) -> Reading:
    """Without the times of the counters. Raises SourceError."""
    answers = {}
    for number, text in enumerate(texts):
        origin = origins[number] if origins else f"exporter {number + 1}"
        body = text.encode() if isinstance(text, str) else text
        answers[origin] = Answer(reading_of(body, origin, time), time, time)
    clock = SettableClock()
    clock.at = time
    return replace(ExporterReadings(lambda: [*answers], lambda _: (answers, {}), clock)(), stamps={})
