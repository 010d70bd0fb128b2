"""What policies see: windows of half a minute and the facts, or the model of interference, with what findings share.

They read it and store nothing. Advice that cannot help is dropped, by the files and requests that job statistics show:
without these, none is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from tierd.detect.accelerators import Accelerator
from tierd.detect.attribution import directories
from tierd.detect.device_time import TargetTime
from tierd.detect.groups import grouped, totals
from tierd.detect.interference import Loss
from tierd.detect.profile import Classes, Profile, profiles
from tierd.model import Activities, ClientLoad, Facts, PoolPair, Table, TargetFill, Window
from tierd.text import first_names, percent, rate_text
from tierd.validators import Positive, Share

LATEST_SECONDS, RECENT_SECONDS = 30.0, 60.0
"""The last half minute shows what a job does now. Loads that vary more are measured over two."""
MIN_FREE_SHARE = 0.1
"""Free share of a pool below which no advice sends files there."""
STALE_SECONDS = 900.0
"""Readings of clients older than this are ignored."""


@dataclass(frozen=True)
class View:
    """The input of :attr:`tierd.policies.protocol.Policy.find`."""

    windows: Sequence[Window]
    """Windows of half a minute, oldest first; at least one."""
    facts: Facts = field(default_factory=Facts)
    activities: Activities = lambda _, __: ()
    active: Collection[tuple[str, str, str]] = ()
    """Keys of active findings."""
    pool_pairs: Sequence[PoolPair] = (PoolPair("flash", "hdd"),)
    """Each flash pool with its disk pool: first the pools of the whole file system, then the pools of scopes."""
    pools_of: Callable[[str], PoolPair] = lambda _: PoolPair("flash", "hdd")
    """The pools for a path, by its scope."""
    memory: dict[float, Mapping[str, Profile]] = field(default_factory=dict, compare=False, repr=False)
    """Cache of ``profiles``, shared by all policies."""

    @property
    def now(self) -> float:
        return self.windows[-1].end

    @cached_property
    def flash(self) -> Collection[str]:
        """Full names of the flash targets of the file system and of scopes; empty if the pools are unknown."""
        return tuple(dict.fromkeys(target for pools in self.pool_pairs
                                   for target in self.facts.pools.get(pools.flash, ())))

    def recent(self, seconds: float = RECENT_SECONDS) -> Sequence[Window]:
        return [window for window in self.windows if window.end > self.now - seconds]

    @cached_property
    def seconds_active(self) -> Mapping[str, float]:
        """Seconds of all windows in which each job was active."""
        return totals((job, window.seconds) for window in self.windows for job in window.jobs)

    def directories_of(self, job: str) -> tuple[str, ...]:
        return directories(self.activities(job, self.windows[0].start))

    def profiles(self, seconds: float = RECENT_SECONDS) -> Mapping[str, Profile]:
        if seconds not in self.memory:
            self.memory[seconds] = profiles(self.recent(seconds))
        return self.memory[seconds]

    def sizes_read(self, of: str = "") -> Mapping[str, float]:
        """Mean bytes per opened file of each job that reads from targets with this prefix."""
        targets = {target for window in self.windows for target, _ in window.loads if target.startswith(of)}
        return {part.job.job: part.bytes_per_file for part in traffic(self.profiles(), targets, "read")}

    def targets_of_pool(self, fsname: str, pool: str) -> frozenset[str]:
        """Object targets of a pool, or in all of several (exporters: "all,hdd"). "" selects those outside all pools."""
        if pool:
            return frozenset.intersection(*(frozenset(self.facts.pools.get(each, ())) for each in pool.split(",")))
        pooled = {target for members in self.facts.pools.values() for target in members}
        return frozenset(target for window in self.windows for target, _ in window.loads
                         if target.startswith(f"{fsname}-") and target not in pooled)

    def has_free_space(self, targets: Collection[str]) -> bool:
        """Whether the targets exist and have free space. Unknown space counts as free."""
        room = room_on(targets, self.facts.fill)
        return bool(targets) and (not room.size_bytes or room.avail_bytes >= MIN_FREE_SHARE * room.size_bytes)

    @property
    def clients(self) -> Iterator[ClientLoad]:
        """Clients that were seen recently."""
        return (each for each in self.facts.clients if each.seconds > 0 and each.time > self.now - STALE_SECONDS)

    def by_cause(self, cause_of: Callable[[ClientLoad], str]) -> Mapping[tuple[str, str], Sequence[ClientLoad]]:
        """Groups clients by cause: an administrator sets a parameter on many clients, not on one."""
        found = grouped(((client.fsname, cause_of(client)), client) for client in self.clients)
        return {key: clients for key, clients in sorted(found.items()) if key[1]}


class JobTraffic(NamedTuple):
    """Bytes and RPCs of one job to some targets, in one direction."""

    job: Profile
    moved_bytes: float
    rpcs: float
    bytes_per_file: float
    """Mean bytes per opened file, which limit the size of a request. Infinite for a job that opens no file."""


def traffic(jobs: Mapping[str, Profile], targets: Collection[str], direction: str) -> Iterator[JobTraffic]:
    """Traffic of each job that reads from, or writes to, these targets. ``direction`` is ``read`` or ``write``."""
    for job in jobs.values():
        loads = [load for target, load in job.by_target.items() if target in targets]
        moved = sum(load.read_bytes if direction == "read" else load.write_bytes for load in loads)
        rpcs = sum(load.reads if direction == "read" else load.writes for load in loads)
        files = max(job.opens, job.closes, job.creates)
        if moved and rpcs:
            yield JobTraffic(job, moved, rpcs, moved / files if files else float("inf"))


def rpcs_saved(parts: Iterable[JobTraffic], rpc_bytes: float) -> float | None:
    """Share of RPCs saved if each has ``rpc_bytes`` or the size of the file. None if there are no RPCs.

    No request is larger than its file, whatever the limit is.
    """
    sent = least = 0.0
    for part in parts:
        sent += part.rpcs
        least += min(part.rpcs, part.moved_bytes / max(1.0, min(rpc_bytes, part.bytes_per_file)))
    return 1 - least / sent if sent else None


def share_at(limit: float, sent: Mapping[int, float]) -> float:
    """Share of the RPCs in a histogram that reached a limit.

    >>> share_at(8, {1: 10, 7: 10, 8: 60})
    0.75
    """
    every = sum(sent.values())
    return sum(count for value, count in sent.items() if value >= limit) / every if every else 0.0


def room_on(targets: Collection[str], fill: Mapping[str, TargetFill]) -> TargetFill:
    """The space on some targets together, as far as it is known."""
    known = [fill[target] for target in targets if target in fill]
    return TargetFill(sum(each.size_bytes for each in known), sum(each.avail_bytes for each in known),
                      sum(each.growth_bytes_per_second for each in known))


def mean_concurrent_rpcs(jobs: Mapping[str, Profile], targets: Collection[str]) -> float | None:
    """Mean number of concurrent bulk RPCs on a busy target. None if the servers report no times.

    By Little's law it is the sum of the RPCs' service times per second.
    """
    busy = totals((target, load.busy_usec / 1e6 / job.seconds) for job in jobs.values()
                  for target, load in job.by_target.items() if target in targets and load.bulk_operations)
    return sum(busy.values()) / len(busy) if busy and any(busy.values()) else None


def client_names(clients: Sequence[ClientLoad]) -> str:
    names = list(dict.fromkeys(client.client for client in clients))
    return f"{'client' if len(names) == 1 else f'{len(names)} clients:'} {first_names(names)}"


@dataclass(frozen=True)
class SlowdownSettings(Table):
    """Thresholds of the table ``[noisy_neighbour]``, for both kinds of slowdown. Losses are parts of the throughput
    that the stream would have without the other jobs.
    """

    classes: Classes = field(default_factory=Classes)
    recent_seconds: Positive = 30.0
    """Period from which profiles of jobs are made."""
    min_loss: Share = 0.05
    """Loss that a finding is about: users do not notice less, and disks vary as much."""
    probability: Share = 0.6
    """A finding begins when the stream loses ``min_loss`` with this probability."""
    end_probability: Share = 0.5
    """It ends when the probability is less."""


@dataclass(frozen=True, slots=True)
class SlowdownView:
    """What the findings are made of."""

    now: float
    losses: Sequence[Loss]
    """To suspects."""
    rival_losses: Sequence[Loss]
    """To other streams."""
    jobs: Sequence[str]
    """Names of jobs by their numbers."""
    targets: Sequence[str]
    """Names of all targets with work, by their numbers."""
    profiles: Mapping[str, Profile]
    """Of all jobs in the losses that may be reported."""
    active: Collection[tuple[str, str, str]]
    """Keys of active findings."""
    device_time: Mapping[str, TargetTime]
    accelerators: Mapping[str, Accelerator]
    """By target."""
    remembered: Mapping[str, int]
    """Windows of Prometheus' history by job, for streams whose usual throughput comes from it."""

    def found(self, losses: Sequence[Loss], kind: str, settings: SlowdownSettings) -> Iterator[tuple[
            Loss, str, Profile, tuple[str, ...]]]:
        """The losses to report as findings of this kind: each with the victim, the profile of each suspect, and the
        targets that hold the victim up.
        """
        for loss in losses:
            victim, suspects = self.jobs[loss.victim], [self.jobs[job] for job in loss.suspects]
            if is_found(loss, any((kind, job, victim) in self.active for job in suspects), settings):
                targets = tuple(sorted(self.targets[target] for target in loss.targets))
                yield from ((loss, victim, self.profiles[job], targets) for job in suspects if job in self.profiles)


def is_found(loss: Loss, held: bool, settings: SlowdownSettings) -> bool:
    """Whether a loss is reported. A finding that is active ends at a lower probability than it began."""
    return loss.probability(settings.min_loss) >= (settings.end_probability if held else settings.probability)


def slowdown_numbers(loss: Loss, settings: SlowdownSettings) -> dict[str, Any]:
    """Values of :class:`tierd.model.SlowdownEvidence`: what the stream gets, and would get without these jobs."""
    usual = loss.usual_bytes_per_second
    low, high = loss.interval
    return {
        "victim_usual_bytes_per_second": usual,
        "victim_bytes_per_second": loss.bytes_per_second,
        "slowdown": usual / loss.bytes_per_second,
        "loss_low": low,
        "loss_high": high,
        "loss_probability": loss.probability(settings.min_loss),
        "carrier": loss.carrier,
        "aggressor_came_at": loss.came_at,
    }


def slower(victim: str, loss: Loss) -> str:
    """What the stream gets, and what it would get."""
    usual = loss.usual_bytes_per_second
    return (f"{victim} streams at {rate_text(loss.bytes_per_second)} instead of {rate_text(usual)} "
            f"({percent(loss.bytes_per_second / usual)})")
