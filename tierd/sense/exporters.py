"""A reading over HTTP, from lustre-exporter on each server: one scrape each, put together."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Sequence

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tierd.sense.readings import FULL_FRACTION, UNKNOWN_RECOVERY, JobCounters, Reading

_USEC = 1e6
_CONDITIONS = frozenset({"lustre_ost_degraded", "lustre_ost_recovering", "lustre_mdt_recovering",
                         "lustre_ost_size_bytes", "lustre_ost_avail_bytes"})


class SourceError(OSError):
    """An exporter that did not answer, or not with an exposition."""


def fetch(url: str, timeout_seconds: float) -> str:
    """The exposition of one exporter. Raises SourceError naming the URL."""
    request = urllib.request.Request(url, headers={"Accept": "text/plain; version=0.0.4"})  # noqa: S310 -- configured
    try:
        with urllib.request.urlopen(request, timeout=timeout_seconds) as response:  # noqa: S310 -- from configuration
            body: bytes = response.read()
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise SourceError(f"{url}: {getattr(error, 'reason', error)}") from error
    return body.decode("utf-8", "replace")


def reading(expositions: Sequence[str], time: float) -> Reading:
    """Job counters of all targets of several exporters, read at about the same time. Raises SourceError."""
    collected = _Jobs()
    for text in expositions:
        try:
            for family in text_string_to_metric_families(text):
                if family.name.startswith(("lustre_job_", "lustre_ost_", "lustre_mdt_")):
                    collected.add(family.samples)
        except ValueError as error:
            raise SourceError(f"not an exposition: {error}") from error
    return Reading(time, collected.counters(), frozenset(collected.targets), collected.conditions())


class _Jobs:
    """Samples of many families, sorted by job and target."""

    def __init__(self) -> None:
        self.targets: set[str] = set()
        self._gauges: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._samples: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        self._sums: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        self._buckets: defaultdict[tuple[str, str, str], dict[float, float]] = defaultdict(dict)

    def add(self, samples: Iterable[Sample]) -> None:
        """Take the samples of one family."""
        for sample in samples:
            labels = sample.labels
            if "target" not in labels:
                continue
            target = f"{labels.get('fs', '')}-{labels['target']}"
            self.targets.add(target)
            if "job" in labels:
                self._take((target, labels["job"]), sample)
            elif sample.name in _CONDITIONS:
                self._gauges[target][sample.name] = sample.value

    def _take(self, key: tuple[str, str], sample: Sample) -> None:
        name, value = sample.name, sample.value
        operation = sample.labels.get("operation", "")
        direction = sample.labels.get("direction", "")
        if name == "lustre_job_operations_total":
            self._samples[key][operation] = value
        elif name == "lustre_job_operation_seconds_total":
            self._sums[key][operation] = value * _USEC
        elif name in {"lustre_job_read_bytes_total", "lustre_job_write_bytes_total"}:
            self._sums[key][name.removeprefix("lustre_job_").removesuffix("_total")] = value
        elif name == "lustre_job_io_size_bytes_bucket":
            self._buckets[*key, direction][float(sample.labels["le"])] = value
        elif name == "lustre_job_io_size_bytes_count":
            self._samples[key][f"{direction}_bytes"] = value

    def conditions(self) -> dict[str, str]:
        """Why a target's speed says nothing at the moment; healthy targets are left out."""
        found = {}
        for target in self.targets:
            gauges = self._gauges[target]
            recovering = gauges.get("lustre_ost_recovering", gauges.get("lustre_mdt_recovering"))
            size, avail = gauges.get("lustre_ost_size_bytes", 0.0), gauges.get("lustre_ost_avail_bytes")
            if gauges.get("lustre_ost_degraded"):
                found[target] = "degraded"
            elif recovering is None or recovering:
                found[target] = UNKNOWN_RECOVERY if recovering is None else "in recovery"
            elif size and avail is not None and avail < FULL_FRACTION * size:
                found[target] = "full"
        return found

    def counters(self) -> dict[tuple[str, str], JobCounters]:
        """What each job did on each target, in the units of the parameter files."""
        sizes: defaultdict[tuple[str, str], defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
        for (target, job, _), cumulative in self._buckets.items():
            below = 0.0
            for upper in sorted(cumulative):
                if upper != float("inf"):
                    sizes[target, job][int(upper)] += cumulative[upper] - below
                below = cumulative[upper]
        keys = self._samples.keys() | self._sums.keys()
        return {key: JobCounters(self._samples[key], self._sums[key], dict(sizes[key])) for key in keys}
