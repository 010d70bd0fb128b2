"""Replays a recording: what tierd would have found and planned, as data, JSON and text. Changes nothing.

Time is the tape's: each snapshot is one cycle. Changelog records are read with the first snapshot taken after them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lustre.mounted import space_of
from lustre.parameters import Tree
from tierd.cli.explain import advice_item_lines, step_lines
from tierd.config.settings import Settings
from tierd.daemon.answers import to_json
from tierd.daemon.status import action_answer, found_case
from tierd.detect import attribution
from tierd.engine import Engine
from tierd.model import Action, Facts, Finding, TargetFill
from tierd.refusal import Refusal
from tierd.sense import parameters
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.facts import FillRates
from tierd.sense.metadata import UnlistedJobs
from tierd.sense.nodes import Counters, Turn, client_loads, read_mounts
from tierd.sense.readings import Reading, earlier_work, window
from tierd.sense.tape import Tape
from tierd.structs import json_text
from tierd.text import quoted


class TapeFacts:
    """Facts for the policies, from the tape: clients, space, recent directories and their layouts."""

    def __init__(self, tape: Tape, table: ActivityTable) -> None:
        self._tape = tape
        self._table = table
        self._growth = FillRates()
        self._before: tuple[float, Mapping[str, Counters]] = 0.0, {}
        """Time and counters of the mounts of the snapshot before."""

    def __call__(self, tree: Tree, time: float) -> Facts:
        latest, latest_seconds = self._table.latest(time)
        directories, seconds = self._table.recent(time)
        room = parameters.pool_capacity(tree)
        pool_of = {target: pool for pool, targets in room.pools.items() for target in targets}
        (then, before), now = self._before, read_mounts(tree, pool_of)
        self._before = time, now
        spaces = ((target, space_of(tree, f"obdfilter/{target}")) for target in tree.devices("obdfilter"))
        return Facts(
            clients=tuple(client_loads(Turn(parameters.THIS_NODE, before, now, time, time - then))), pools=room.pools,
            fill=self._growth.measured({t: TargetFill(s.size_bytes, s.avail_bytes) for t, s in spaces
                                        if s.size_bytes and s.avail_bytes}, time),
            directories=directories, directory_seconds=seconds, latest_directories=latest,
            latest_seconds=latest_seconds, metadata_targets=len(tree.devices("mdt")),
            default_layouts=self._tape.layouts_of(d.directory for d in directories),
            shared_files=tuple(self._table.shared_files))


@dataclass(frozen=True, slots=True)
class Report:
    """Findings in order of their start, the plan, and the refusals."""

    tape: Tape
    findings: tuple[Finding, ...]
    plan: tuple[Action, ...]
    refusals: tuple[str, ...]
    advice: tuple[Finding, ...]
    """Further findings, each once, which the plan does not use."""


ReadCounters = Callable[[Tree, float], Reading]
"""Reads the counters of a snapshot, with its time."""


def replay(tape: Tape, settings: Settings, read: ReadCounters = parameters.reading) -> Report:
    """Run sense, detect and decide over the whole tape."""
    engine = Engine(settings)
    table = ActivityTable(tape.resolve)
    facts = TapeFacts(tape, table)
    unlisted = UnlistedJobs(table.operations_of)
    advice: dict[tuple[str, str, str], Finding] = {}
    findings: dict[tuple[str, str, str], Finding] = {}
    plans: dict[tuple[str, str, str], tuple[Action, ...]] = {}
    refusals: dict[Refusal, None] = {}
    before, lost = read(tape.trees[0], tape.times[0]), dict[str, float]()
    records_read = 0
    for time, tree in zip(tape.times[1:], tape.trees[1:], strict=True):
        begin = records_read
        while records_read < len(tape.records) and tape.records[records_read].time <= time:
            records_read += 1
        table.add([tape.records[begin:records_read]])
        after = read(tree, time)
        counted = window(before, after, lost)
        if not engine.history.windows:
            engine.use_earlier_work(earlier_work(before, counted))
        seen = unlisted.completed(counted, table.oldest_time)
        table.note_shared(seen)
        result = engine.run_cycle(seen, table.of_job, partial(facts, tree, time))
        before = after
        for finding in result.findings:
            if finding.evidence.of_stream is None:
                advice[finding.key] = finding
                continue
            known = findings.get(finding.key, finding)
            findings[finding.key] = replace(known, targets=union(known.targets, finding.targets),
                                            directories=union(known.directories, finding.directories))
            if not plans.get(finding.key):
                room = replace(parameters.pool_capacity(tree), default_layouts=tape.layouts_of(finding.directories))
                plan = engine.plan(finding, attribution.activities_of_jobs(
                    table.of_job, finding.aggressors, finding.aggressor, 0.0), room)
                plans[finding.key] = (*plan.actions, *plan.recommended)
                refusals.update(dict.fromkeys(plan.refusals))
    actions = without_duplicates([action for plan in plans.values() for action in plan])
    planned = {quoted(action.directory) for action in actions}
    refused = dict.fromkeys(str(each) for each in refusals if each.what not in planned)
    return Report(tape, tuple(findings.values()), actions, tuple(refused), tuple(advice.values()))


def union(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    """Combine two sequences in order, without duplicates."""
    return tuple(dict.fromkeys((*first, *second)))


def as_json(report: Report) -> str:
    return json_text({
        "tape": report.tape.name,
        "fsname": report.tape.fsname,
        "findings": [to_json(found_case(f, 0, active=True)) for f in report.findings],
        "plan": [to_json(action_answer(a)) for a in report.plan],
        "refusals": list(report.refusals),
        "advice": [to_json(found_case(f, 0, active=True)) for f in report.advice],
    }, indent=1)


def as_text(report: Report) -> str:
    start = report.tape.times[0]
    length = report.tape.times[-1] - start
    lines = [(f"{report.tape.name}: {len(report.tape.times)} snapshots over {length:.0f} s of file system "
              f"{report.tape.fsname}, {len(report.tape.records)} changelog records")]
    if report.tape.undecoded_bytes:
        lines.append(f"  {report.tape.undecoded_bytes} bytes at the ends of the changelogs are not a complete record")
    if not report.findings:
        lines.append("No findings.")
    for finding in report.findings:
        lines += ["", f"{finding.kind} after {finding.time - start:.0f} s: {finding.sentence}.",
                  f"  targets: {', '.join(finding.targets)}",
                  f"  directories: {', '.join(map(quoted, finding.directories)) or 'unknown'}"]
    lines += ["", *(["Plan:", *step_lines([*map(action_answer, report.plan)], "  ")] if report.plan
              else ["Plan: no changes."])]
    lines += [f"Not done: {refusal}." for refusal in report.refusals]
    for seen in report.advice:
        lines += ["", f"Also found: {seen.kind}: {seen.sentence}."]
        lines += [line for advice in seen.advice for line in advice_item_lines(advice)]
    return "\n".join(lines)


def without_duplicates(actions: Sequence[Action]) -> tuple[Action, ...]:
    """The first action of each kind for each path, or for each directory if the action has no path."""
    seen: dict[tuple[str, str], Action] = {}
    for action in actions:
        seen.setdefault((action.kind, action.path or action.directory), action)
    return tuple(seen.values())
