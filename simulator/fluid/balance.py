"""Who gets how much: the waiting times at which nobody asks a target for more than it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simulator.devices import DeviceSettings
from simulator.fluid.demand import Io, latency_seconds, shares
from simulator.fluid.flows import CHECKPOINT_IOS_PER_FILE, Flow
from simulator.journal import BLOCK_BYTES, JournalSettings

ROUNDS = 300
_BLOCK = Io(True, 4 * BLOCK_BYTES)
_RECORD = Io(True, BLOCK_BYTES)


@dataclass(frozen=True, slots=True)
class Group:
    """Targets that are the same and carry the same load."""

    device: DeviceSettings
    journal: JournalSettings
    journal_device: DeviceSettings | None
    slowdown: float
    targets: int


@dataclass(slots=True)
class State:
    """Of one group: how long everybody waits, and what was asked for at that."""

    wait: float = 1e-4
    commit: float = 0.005
    asked: float = 0.0


Place = Mapping[tuple[int, int, int], Mapping[int, float]]
"""Flow, stage, demand: to group, the share of the demand's targets that lie in it."""


def balanced(
    flows: Sequence[Flow], groups: Sequence[Group], places: Place, metadata_cores: float
) -> tuple[list[float], list[State], float]:  # fmt: skip
    """Operations per second of each flow, the state of each group, and what a request to an MDT waits."""
    states = [State() for _ in groups]
    metadata_wait = 0.0
    rates = [0.0] * len(flows)
    for round_number in range(ROUNDS):
        weight = 0.5 if round_number < ROUNDS // 2 else 0.15
        rates = [_rate(flow, index, states, groups, places, metadata_wait) for index, flow in enumerate(flows)]
        for number, (state, group) in enumerate(zip(states, groups, strict=True)):
            _ask(number, state, group, flows, rates, places)
            state.wait = min(max(state.wait * max(state.asked, 1e-3) ** weight, 1e-7), 1e4)
        work = sum(rate * flow.metadata_seconds for rate, flow in zip(rates, flows, strict=True)) / metadata_cores
        metadata_wait = min(max(metadata_wait, 1e-6) * max(work, 1e-3) ** weight, 1e4)
    return rates, states, metadata_wait


def _rate(
    flow: Flow, index: int, states: Sequence[State], groups: Sequence[Group], places: Place, metadata_wait: float
) -> float:  # fmt: skip
    seconds = flow.think_seconds + flow.metadata_seconds + (metadata_wait if flow.metadata_seconds else 0.0)
    for stage_number, stage in enumerate(flow.stages):
        slowest = 0.0
        for number, demand in enumerate(stage):
            for group in places[index, stage_number, number]:
                state = states[group]
                longest = _slowest_of(demand.targets)
                idle = latency_seconds(groups[group].device, demand.io) * groups[group].slowdown
                took = (state.wait * longest + idle) * min(demand.rpcs, 1.0)
                slowest = max(slowest, took, 1.5 * state.commit * longest if demand.sync else 0.0)
        seconds += slowest
    return min(flow.rate_max, flow.concurrency / seconds)


def _slowest_of(targets: int) -> float:
    """How much longer than the mean the longest of several waits is, when each is longer or shorter by chance."""
    return sum(1 / number for number in range(1, min(targets, 64) + 1))


def _ask(
    number: int, state: State, group: Group, flows: Sequence[Flow], rates: Sequence[float], places: Place
) -> None:  # fmt: skip
    """What everybody asks of one target of a group, as a share of what it has."""
    used = [0.0, 0.0]
    syncs = objects = 0.0
    for index, (flow, rate) in enumerate(zip(flows, rates, strict=True)):
        for stage_number, stage in enumerate(flow.stages):
            for demand_number, demand in enumerate(stage):
                share = places[index, stage_number, demand_number].get(number)
                if share is None:
                    continue
                operations = rate * demand.targets * share / group.targets
                _add(used, group, demand.io, operations * demand.rpcs)
                syncs += operations * demand.sync
                objects += operations * demand.objects
    commits = _commits(state, group, syncs)
    if group.journal_device is None:
        _add(used, group, _BLOCK, commits)
        _add(used, group, _RECORD, commits)
    _add(used, group, Io(True, 4 * BLOCK_BYTES, scattered=True), objects * CHECKPOINT_IOS_PER_FILE)
    state.asked = max(used) * group.slowdown


def _commits(state: State, group: Group, syncs: float) -> float:
    """Journal commits per second: who comes while one is under way joins the next."""
    device = group.journal_device or group.device
    wait = state.wait if group.journal_device is None else 0.0
    each = 2 * (wait + latency_seconds(device, _RECORD))
    state.commit = each + min(group.journal.batch_seconds, each)
    return syncs / (1 + syncs * state.commit)


def _add(used: list[float], group: Group, io: Io, times: float) -> None:
    for limit, share in enumerate(shares(group.device, io)):
        used[limit] += share * times

