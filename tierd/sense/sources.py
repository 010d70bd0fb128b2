"""All sources of the daemon, built from the configuration, with the age of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from lustre.filesystem import Filesystem
from lustre.parameters import Tree
from tierd.clock import Clock
from tierd.config.sense import SenseSettings
from tierd.config.settings import Settings
from tierd.integrations.protocol import SchedulerJob, Site
from tierd.integrations.registry import started
from tierd.model import DirectoryActivity
from tierd.sense import parameters
from tierd.sense.changelogs.follow import Follower, TimedCalls
from tierd.sense.changelogs.recording import RecordingCheck
from tierd.sense.changelogs.table import Batch
from tierd.sense.changelogs.tally_source import TallyInbox, TallySource
from tierd.sense.discovery import Discovery, FileTargets
from tierd.sense.exporters import ExporterReadings, HttpAnswers
from tierd.sense.freshness import CheckedReadings, CheckedRecords, RecordSource, SourceAge
from tierd.sense.http_client import HttpClient
from tierd.sense.prometheus import PrometheusCounters, QueryApi
from tierd.sense.prometheus_history import LEARN_TIMEOUT_SECONDS, learned_history
from tierd.sense.readings import Reading, of_filesystem
from tierd.sense.watched import WatchedDirectories, Watcher


class LiveSource:
    """Counters and changelog records."""

    def __init__(self, read: Callable[[], Reading], follower: RecordSource,
                 recording: RecordingCheck | None = None) -> None:
        self._read = read
        self.follower = follower
        self._recording = recording

    def reading(self) -> Reading:
        """Counters now. Raises OSError if they cannot be read."""
        reading = self._read()
        if self._recording is not None:
            self._recording.set_states(reading.changelogs)
        return reading

    def records(self) -> Iterable[Batch]:
        """Records, or tallies of readers, since the last call. Raises OSError at the end if some could not be read."""
        return self.follower.batches()


BLIND_WINDOWS = 6
MIN_BLIND_SECONDS = 30.0
"""Time without a tally of an MDT after which tierd starts no new acts, at least. A lease may expire and be taken."""
ReadCounters = Callable[[], Reading]


def query_api(sense: SenseSettings, fsname: str, clock: Clock, environment: Mapping[str, str],
              timeout_seconds: float) -> QueryApi:
    client = HttpClient(sense.prometheus.access, timeout_seconds, environment)
    return QueryApi(sense.prometheus, fsname, clock, client, timeout_seconds, skew_seconds=sense.skew_seconds)


def counter_source(sense: SenseSettings, fsname: str, tree: Tree, clock: Clock,
                   environment: Mapping[str, str]) -> ReadCounters:
    """The configured source of counters: Prometheus, else exporters, else this node. Raises OSError."""
    if sense.prometheus.url:
        return PrometheusCounters(query_api(sense, fsname, clock, environment, sense.wait_seconds), sense.stale_seconds)
    if sense.exporters or sense.exporter_files:
        client = HttpClient(sense.exporter_access, sense.timeout_seconds, environment)
        return ExporterReadings(Discovery(sense.exporters, FileTargets(sense.exporter_files)),
                                HttpAnswers(client, clock, sense.wait_seconds, sense.skew_seconds), clock)
    return lambda: parameters.reading(tree, clock.now(), clock.now)


def counter_source_name(sense: SenseSettings) -> str:
    """Name of the source of counters, for status and metrics."""
    if sense.prometheus.url:
        return "prometheus"
    return "exporters" if sense.exporters or sense.exporter_files else "counters"


@dataclass(frozen=True, kw_only=True)
class SourceParts:
    """What the sources of one configuration read."""

    settings: Settings
    filesystem: Filesystem
    read: ReadCounters
    mdts: Sequence[str]
    positions: Mapping[str, int]
    """Last changelog record read, by MDT."""
    clock: Clock
    environment: Mapping[str, str]
    inbox: TallyInbox | None = None
    """Where the tallies of readers on other nodes arrive; None if changelogs are read here."""


class Sources:
    """The sources of one configuration."""

    def __init__(self, parts: SourceParts) -> None:
        sense = parts.settings.sense
        self.integrations = started(parts.settings.integrations.by_name, Site(
            fsname=parts.filesystem.fsname, clock=parts.clock, environment=parts.environment,
            stale_seconds=sense.stale_seconds, flash_pools=parts.settings.resolved_scopes.flash_pools))
        read, fsname = parts.read, parts.filesystem.fsname
        self.counters = CheckedReadings(
            counter_source_name(sense), lambda: self._noted(of_filesystem(read(), fsname)), parts.clock,
            sense.stale_seconds, skew_seconds=sense.skew_seconds,
            note=(lambda: read.problem) if isinstance(read, ExporterReadings) else str)
        self.history = (partial(learned_history, query_api(sense, fsname, parts.clock, parts.environment,
                                                           LEARN_TIMEOUT_SECONDS))
                        if sense.prometheus.url and sense.prometheus.learn_seconds else None)
        self._watcher: Watcher | None = None
        self.timed_calls = TimedCalls(parts.clock)
        """Calls to MDTs, with a limited wait."""
        self.follower: Follower | WatchedDirectories | TallySource
        recording = self._open_changelogs(parts)
        name = "readers" if parts.inbox is not None else "inotify" if sense.watch else "changelog"
        self.records = CheckedRecords(
            name, self.follower, parts.clock, sense.stale_seconds, skew_seconds=sense.skew_seconds,
            note=recording.note if recording and parts.inbox is None else str)
        self.live = LiveSource(self.counters, self.records, recording)

    def _open_changelogs(self, parts: SourceParts) -> RecordingCheck | None:
        """Begin to follow changelogs, tallies or directories. Returns the check that MDTs record, if there is one."""
        sense, reader, clock = parts.settings.sense, parts.settings.reader, parts.clock
        recording = RecordingCheck(parts.filesystem.fsname, sense.readers)
        if parts.inbox is not None:
            self.follower = TallySource(
                parts.inbox, {mdt: parts.positions.get(mdt, 0) for mdt in parts.mdts}, clock,
                max(MIN_BLIND_SECONDS, BLIND_WINDOWS * reader.window_seconds), recording)
            return recording
        if sense.watch:
            self._watcher = Watcher(clock.now)
            self.follower = WatchedDirectories(self._watcher, parts.filesystem, parts.settings.filesystem.mount,
                                               sense.watch, lambda: self.counters.jobs)
            return None
        self.follower = Follower(self.timed_calls.reading(parts.filesystem.changelog), parts.mdts, clock,
                                 parts.positions, recording=recording)
        return recording

    def _noted(self, reading: Reading) -> Reading:
        for source in self.integrations:
            reading = source.noted(reading)
        return reading

    def refresh(self) -> None:
        for source in self.integrations:
            source.refresh()

    def ages(self) -> tuple[SourceAge, ...]:
        integrations = (source.age for source in self.integrations)
        return (self.counters.age, self.records.age, *(age for age in integrations if age is not None))

    def enriched(self, activities: Sequence[DirectoryActivity], filesystem: Filesystem) -> list[DirectoryActivity]:
        """Activities with what the integrations know about their files. The state of each source has its problem."""
        done = list(activities)
        for source in self.integrations:
            done = source.enriched(done, filesystem)
        return done

    def jobs(self, names: Iterable[str]) -> Mapping[str, SchedulerJob]:
        """What the scheduler reports about jobs, as far as known. Never waits."""
        return {name: job for source in self.integrations for name, job in source.jobs(names).items()}

    def close(self) -> None:
        for source in (*self.integrations, self._watcher):
            if source is not None:
                source.close()
