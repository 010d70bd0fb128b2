"""What streams lost in past windows, what tierd would have done about it, and which files would be on flash.

The windows go through the daemon's engine and policies, and losses are counted as in the bill. From the moment at which
tierd would have given a neighbour's new files a default layout, flash regains what the neighbour costs.

Prometheus does not know how long files live: at least until their job removes them or ends, at most to the end of the
range. So the flash that is needed is a range. If there is less than all need, the jobs come first whose files give most
back for their bytes: more flash never regains less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lustre.fid import Fid
from tierd.acts import ActKind
from tierd.config.settings import Settings
from tierd.decide import benefit
from tierd.detect.account import Case, Key, Lost, bill_windows, total
from tierd.engine import Engine
from tierd.loads import Floats, Pair
from tierd.model import Candidate, Capacity, DirectoryActivity, Facts, Finding, Window
from tierd.refusal import Reason
from tierd.sense.counters import CounterTable
from tierd.sense.readings import Reading

PARTS = 400
"""Parts of the range whose largest use of flash is kept for each neighbour. A choice: 25 minutes of a week."""
PLENTY_BYTES = 1 << 60
"""Size of the flash pool in a plan: how much is needed is the question."""
DIRECTORY = "/directory"
"""Prometheus does not know where a job works: all its files count as in one directory."""
OLD = Candidate(Fid(1, 1, 0), f"{DIRECTORY}/file", 0.0)
"""A file that tierd would move if the job reads its files."""


@dataclass(frozen=True, slots=True)
class PastCase:
    """A stream that lost throughput to a job."""

    kind: str
    aggressor: str
    victim: str
    begin: float
    end: float
    lost: Lost
    given_back: Lost
    """The part after the moment at which tierd would have acted."""
    refused: str
    """Reason code why tierd would have done nothing; empty if it would have acted."""


@dataclass(slots=True)
class Made:
    """Files that a job made and removed, and the bytes that it wrote."""

    creates: float = 0.0
    unlinks: float = 0.0
    written_bytes: float = 0.0

    def add(self, creates: float, unlinks: float, written_bytes: float) -> None:
        self.creates += creates
        self.unlinks += unlinks
        self.written_bytes += written_bytes

    @property
    def mean_bytes(self) -> float:
        return self.written_bytes / self.creates if self.creates else 0.0


@dataclass(slots=True)
class Neighbour:
    """A job whose new files tierd would have placed on flash."""

    job: str
    acted_at: float
    component_bytes: int
    before: Made
    """What it had made until then."""
    moves: bool
    """Whether it reads its files, so that those which it had made are moved."""
    made: Made = field(default_factory=Made)
    """What it made since then."""
    peaks: dict[int, float] = field(default_factory=dict)
    """Most bytes on flash in each part of the range in which it worked."""
    gain: Lost = field(default_factory=Lost)

    @property
    def mean_bytes(self) -> float:
        """Bytes of a file on flash: of a larger file, the first component."""
        return min((self.made if self.made.creates else self.before).mean_bytes, self.component_bytes)

    @property
    def files(self) -> float:
        """Files on flash that it did not remove. The oldest are removed first."""
        earlier = max(self.before.creates - self.before.unlinks, 0.0)
        living = max(earlier + self.made.creates - self.made.unlinks, 0.0)
        return living if self.moves else min(living, self.made.creates)


class Account:
    """Takes in one window after the other."""

    def __init__(self, settings: Settings, step_seconds: float, begin: float, end: float) -> None:
        recent = max(settings.noisy_neighbour.recent_seconds, 2 * step_seconds)
        self._settings = replace(settings, noisy_neighbour=replace(settings.noisy_neighbour, recent_seconds=recent))
        self._engine = Engine(self._settings)
        self._begin, self._part_seconds = begin, max((end - begin) / PARTS, step_seconds)
        self._all: dict[Key, Case] = {}
        self._after: dict[Key, Case] = {}
        """The part of a case after the act."""
        self._refused: dict[Key, str] = {}
        self._counters: dict[Pair, Sequence[float]] = {}
        self._made: dict[str, Made] = {}
        self._neighbour_of: dict[str, Neighbour] = {}
        """By job: an array has several."""
        self.neighbours: dict[str, Neighbour] = {}
        self.cases: list[PastCase] = []
        self.until = begin
        """End of the last window."""

    @property
    def known_pools(self) -> Sequence[str]:
        """Pools whose costs of service are known, and those that the settings name as flash."""
        return (*self._engine.learner.costs, *self._settings.resolved_scopes.flash_pools)

    def add(self, window: Window, reading: Reading, facts: Callable[[], Facts]) -> None:
        """Take in a window and the reading at its end. ``facts`` returns the pools."""
        found = self._engine.run_cycle(window, lambda *_: (), facts).findings
        self.until = window.end
        self._count(CounterTable.of(reading.jobs), window.end)
        holding = {finding.key: finding for finding in found if finding.evidence.of_stream is not None}
        for key in self._all.keys() - holding.keys():
            self._end(key)
        for key, finding in holding.items():
            track = self._engine.tracks.known.get(finding.victim)
            if track is None:
                continue
            bill_windows(self._all, 0, finding, track)
            if finding.aggressor not in self.neighbours:
                self._refused[key] = self._refusal(finding, window.end, facts())
            elif key in self._all:
                self._refused[key] = ""
                self._after.setdefault(key, Case(0, window.start, window.start))
                bill_windows(self._after, 0, finding, track)
            if finding.aggressor in self.neighbours:
                self._neighbour_of.update(dict.fromkeys(finding.aggressors, self.neighbours[finding.aggressor]))

    def close(self) -> None:
        """End all cases."""
        for key in tuple(self._all):
            self._end(key)

    def _end(self, key: Key) -> None:
        case, after = self._all.pop(key), self._after.pop(key, None)
        given = after.lost() if after is not None else Lost()
        self.cases.append(PastCase(*key, begin=case.begun_at, end=case.ended_at, lost=case.billed(), given_back=given,
                                   refused=self._refused.pop(key, "")))
        if given.bytes:
            neighbour = self.neighbours[key[1]]
            neighbour.gain = total((neighbour.gain, given))

    def _count(self, jobs: CounterTable, now: float) -> None:
        """Count the files that jobs made since the last reading; of a job that is new, since its beginning."""
        working: dict[str, Neighbour] = {}
        for pair, *values in zip(jobs.keys_by_row(), jobs.samples["mknod"].tolist(), jobs.samples["unlink"].tolist(),
                                 jobs.sums["write_bytes"].tolist(), strict=True):
            before = self._counters.get(pair, (0.0, 0.0, 0.0))
            if values == before:
                continue
            done = [value - earlier for value, earlier in zip(values, before, strict=True)]
            self._counters[pair], done = values, values if min(done) < 0 else done
            self._made.setdefault(pair[1], Made()).add(*done)
            if pair[1] in self._neighbour_of:
                neighbour = self._neighbour_of[pair[1]]
                neighbour.made.add(*done)
                working[neighbour.job] = neighbour
        part = min(int((now - self._begin) / self._part_seconds), PARTS)
        for neighbour in working.values():
            neighbour.peaks[part] = max(neighbour.peaks.get(part, 0.0), neighbour.files * neighbour.mean_bytes)

    def _refusal(self, finding: Finding, now: float, facts: Facts) -> str:
        """Why tierd would not act on a finding, as a reason code. Otherwise its aggressor becomes a neighbour."""
        stream, settings = finding.evidence.of_stream, self._settings
        assert stream is not None
        pools = {facts.pool_of(target) for target in finding.targets}
        if finding.kind not in settings.act.on or pools <= {*facts.flash, *settings.resolved_scopes.flash_pools}:
            return Reason.REPORTED_ONLY
        if finding.held or finding.advice_only:
            return Reason.UNCONFIRMED if finding.held else Reason.UNCLEAR_IO
        worth = benefit.refusal(finding, stream, benefit.effect(()), settings.benefit)
        if worth is not None:
            return worth.reason
        made, scope = Made(), settings.resolved_scopes.whole.small_files_to_flash
        for known in filter(None, map(self._made.get, finding.aggressors)):
            made.add(known.creates, known.unlinks, known.written_bytes)
        plenty = dict.fromkeys((scope.flash_pool, scope.hdd_pool), PLENTY_BYTES)
        capacity = Capacity({scope.flash_pool: ("flash",), scope.hdd_pool: finding.targets}, plenty, plenty,
                            {DIRECTORY: None})
        activity = DirectoryActivity(finding.aggressor, DIRECTORY, creates=int(made.creates),
                                     unlinks=int(made.unlinks), candidates=(OLD,))
        plan = self._engine.plan(replace(finding, directories=(DIRECTORY,)), (activity,), capacity)
        layouts = {action.kind: action.layout for action in (*plan.actions, *plan.recommended)}
        if ActKind.SET_DEFAULT_LAYOUT not in layouts:
            return plan.refusals[0].reason if plan.refusals else Reason.NOT_SMALL
        self.neighbours[finding.aggressor] = Neighbour(
            finding.aggressor, now, layouts[ActKind.SET_DEFAULT_LAYOUT].components[0].extent_end or 0,
            before=made, moves=ActKind.MIGRATE in layouts)
        return ""


@dataclass(frozen=True, slots=True)
class Need:
    """Flash for the first jobs, and the bytes that it regains."""

    low_bytes: float = 0.0
    """If files are removed, or moved to disks, when their job ends."""
    high_bytes: float = 0.0
    """If only the jobs themselves remove files."""
    gain: Lost = field(default_factory=Lost)

    @property
    def mean_bytes(self) -> float:
        return (self.low_bytes + self.high_bytes) / 2


def living(neighbour: Neighbour, forever: bool) -> Floats:
    """Bytes of its files on flash in each part of the range."""
    found, last = np.zeros(PARTS + 1), 0.0
    for part in range(min(neighbour.peaks), PARTS + 1 if forever else max(neighbour.peaks) + 1):
        last = found[part] = neighbour.peaks.get(part, last)
    return found


def needs(neighbours: Iterable[Neighbour], reserve: float) -> list[Need]:
    """The flash for no job, for one, for two, and so on, the most useful first. ``reserve``: share that stays free."""
    useful = sorted((each for each in neighbours if each.gain.bytes and each.peaks),
                    key=lambda each: (-each.gain.bytes / (1 + max(each.peaks.values())), each.job))
    low, high, found = np.zeros(PARTS + 1), np.zeros(PARTS + 1), [Need()]
    for count, each in enumerate(useful, 1):
        low, high = low + living(each, False), high + living(each, True)
        found.append(Need(float(low.max()) / (1 - reserve), float(high.max()) / (1 - reserve),
                          total([one.gain for one in useful[:count]])))
    return found


def given_back(needed: Sequence[Need], flash_bytes: float) -> Lost:
    """The bytes that this much flash regains. The interval covers how long files live.

    >>> given_back([Need(), Need(2e12, 8e12, Lost(10e12, 9e12, 11e12, 60.0))], 4e12)
    Lost(bytes=8000000000000.0, low_bytes=4500000000000.0, high_bytes=11000000000000.0, seconds=48.0)
    """
    def at(size: str, gain: str) -> float:
        return float(np.interp(flash_bytes, [getattr(each, size) for each in needed],
                               [getattr(each.gain, gain) for each in needed]))

    return Lost(at("mean_bytes", "bytes"), at("high_bytes", "low_bytes"), at("low_bytes", "high_bytes"),
                at("mean_bytes", "seconds"))
