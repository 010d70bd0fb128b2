"""``tierd replay TAPE``: what tierd would have found and planned, had it watched a recording. Changes nothing.

Time is the tape's: each snapshot is one cycle, and changelog records are heard once the snapshot after them is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lustre.layout import setstripe_arguments, size_text
from lustre.tree import Tree
from tierd import narrate
from tierd.config import Settings
from tierd.engine import Engine, merged
from tierd.facts import Facts, TargetFill
from tierd.model import Action, Finding
from tierd.sense import clients, local
from tierd.sense.changelogs import ActivityTable
from tierd.sense.client_counters import ClientCounters, difference
from tierd.sense.facts import LEAST_OPENERS
from tierd.sense.growth import Growth
from tierd.sense.readings import window
from tierd.sense.recent import RecentDirectories
from tierd.sense.tape import Tape
from tierd.text import quoted

INTERFERENCE = frozenset({"noisy-neighbour", "shared-bandwidth"})
"""Kinds that tell who slows whom: what a recording is judged by."""


@dataclass(frozen=True, slots=True)
class Report:
    """Findings in the order they began, the plan, and why other things were not planned."""

    tape: Tape
    findings: tuple[Finding, ...]
    plan: tuple[Action, ...]
    refusals: tuple[str, ...]
    advice: tuple[Finding, ...]
    """What else was seen, each once: for people, not for the plan."""


def replay(tape: Tape, settings: Settings) -> Report:
    """Sense, detect and decide over the whole tape."""
    engine = Engine(settings)
    table = ActivityTable(tape.resolve)
    facts = TapeFacts(tape, table)
    advice: dict[tuple[str, str, str], Finding] = {}
    findings: dict[tuple[str, str, str], Finding] = {}
    plans: dict[tuple[str, str, str], tuple[Action, ...]] = {}
    refusals: dict[str, None] = {}
    before = local.reading(tape.trees[0], tape.times[0])
    heard = 0
    for time, tree in zip(tape.times[1:], tape.trees[1:], strict=True):
        while heard < len(tape.records) and tape.records[heard].time <= time:
            table.add([tape.records[heard]])
            heard += 1
        after = local.reading(tree, time)
        thought = engine.think(window(before, after), table.of_job, partial(facts, tree, time))
        before = after
        advice.update((f.key, f) for f in thought.findings if f.kind not in INTERFERENCE)
        for finding in thought.findings:
            if finding.kind not in INTERFERENCE:
                continue
            findings[finding.key] = widened(findings.get(finding.key), finding)
            if not plans.get(finding.key):
                room = replace(local.room(tree), default_layouts=tape.layouts_of(finding.directories))
                plan = engine.plan(finding, table.of_job(finding.aggressor, 0.0), room)
                plans[finding.key] = (*plan.actions, *plan.recommended)
                refusals.update(dict.fromkeys(map(str, plan.refusals)))
    actions = merged([action for plan in plans.values() for action in plan])
    planned = {action.directory for action in actions}
    return Report(tape, tuple(findings.values()), actions,
                  tuple(r for r in refusals if r.partition(": ")[0] not in planned), tuple(advice.values()))


class TapeFacts:
    """What the further detectors need, from the tape: clients, room, recent directories and their layouts."""

    def __init__(self, tape: Tape, table: ActivityTable) -> None:
        self._tape = tape
        self._table = table
        self._recent = RecentDirectories()
        self._growth = Growth()
        self._before: dict[str, tuple[float, ClientCounters]] = {}

    def __call__(self, tree: Tree, time: float) -> Facts:
        """The facts of one snapshot."""
        directories, seconds = self._recent.since_then(self._table.summaries(0.0), time)
        room = local.room(tree)
        pool_of = {target: pool for pool, targets in room.pools.items() for target in targets}
        loads = []
        for counters in clients.counters(tree, pool_of):
            earlier = self._before.get(counters.mount)
            if earlier is not None:
                loads.append(difference(earlier[1], counters, time, time - earlier[0]))
            self._before[counters.mount] = time, counters
        spaces = ((target, local.space_of(tree, f"obdfilter/{target}")) for target in tree.devices("obdfilter"))
        return Facts(
            clients=tuple(load for load in loads if load is not None), pools=room.pools,
            fill=self._growth.measured({t: TargetFill(s.size_bytes, s.avail_bytes) for t, s in spaces
                                        if s.size_bytes and s.avail_bytes}, time),
            directories=directories, directory_seconds=seconds, metadata_targets=len(tree.devices("mdt")),
            default_layouts=self._tape.layouts_of(d.directory for d in directories),
            shared_files=tuple(self._table.shared_files(LEAST_OPENERS)),
        )


def widened(known: Finding | None, now: Finding) -> Finding:
    """A finding as it began, with the targets and directories it came to involve."""
    if known is None:
        return now
    return replace(known, targets=union(known.targets, now.targets),
                   directories=union(known.directories, now.directories))


def union(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    """Both, in order, each once."""
    return tuple(dict.fromkeys((*first, *second)))


def as_json(report: Report) -> str:
    """The report for programs."""
    return json.dumps({
        "tape": report.tape.name,
        "fsname": report.tape.fsname,
        "findings": [finding_json(f) for f in report.findings],
        "plan": [action_json(a) for a in report.plan],
        "refusals": list(report.refusals),
        "advice": [finding_json(f) for f in report.advice],
    }, indent=1)


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding. ``t`` is in epoch seconds, ``evidence`` holds the numbers and the sentence made of them."""
    return {
        "kind": finding.kind, "t": finding.time, "aggressor": finding.aggressor, "victim": finding.victim,
        "targets": list(finding.targets), "directories": list(finding.directories), "advice_only": finding.advice_only,
        "subject": finding.subject,
        "advice": [{"command": a.command, "where": a.where, "effect": a.effect} for a in finding.advice],
        "evidence": {"sentence": finding.sentence, **{k: round(v, 6) for k, v in finding.evidence.items()}},
    }


def action_json(action: Action) -> dict[str, Any]:
    """One step: ``layout`` as arguments of ``lfs setstripe`` or ``lfs migrate``, ``components`` for programs."""
    place = {"path": action.path} if action.path else {}
    if action.directory:
        place["directory"] = action.directory
    return {
        "action": action.kind, **place,
        "layout": " ".join(setstripe_arguments(action.layout)),
        "components": [
            {"extent_start": c.extent_start, "extent_end": c.extent_end, "pool": c.pool, "stripe_count": c.stripe_count}
            for c in action.layout.components
        ],
        "reason": action.reason,
    }


def as_text(report: Report) -> str:
    """The report for people."""
    start = report.tape.times[0]
    length = report.tape.times[-1] - start
    lines = [(f"{report.tape.name}: {len(report.tape.times)} snapshots over {length:.0f} s of file system "
              f"{report.tape.fsname}, {len(report.tape.records)} changelog records")]
    if report.tape.undecoded_bytes:
        lines.append(f"  {report.tape.undecoded_bytes} bytes at the ends of the changelogs were no whole record")
    if not report.findings:
        lines.append("Nothing found.")
    for finding in report.findings:
        lines += ["", f"{finding.kind} after {finding.time - start:.0f} s: {finding.sentence}.",
                  f"  targets: {', '.join(finding.targets)}",
                  f"  directories: {', '.join(map(quoted, finding.directories)) or 'not known'}"]
    lines += ["", *plan_text(report.plan)]
    lines += [f"Not done: {refusal}." for refusal in report.refusals]
    for seen in report.advice:
        lines += ["", f"Seen too: {seen.kind}: {seen.sentence}."]
        lines += [f"  advice: {narrate.advised(advice)}" for advice in seen.advice]
    return "\n".join(lines)


def plan_text(plan: Sequence[Action]) -> list[str]:
    """The plan, as the commands an administrator would type; moves beyond the first ten as a sum."""
    if not plan:
        return ["Plan: nothing to do."]
    moves = [a for a in plan if a.kind == "migrate"]
    lines = ["Plan:"]
    for action in [a for a in plan if a.kind != "migrate"] + moves[:10]:
        arguments = " ".join(setstripe_arguments(action.layout))
        command = {"set-default-layout": f"lfs setstripe {arguments} {quoted(action.directory)}",
                   "migrate": f"lfs migrate --non-block {arguments} {quoted(action.path)}",
                   "advise": f"(advice) lfs migrate --non-block {arguments} {quoted(action.path)}"}[action.kind]
        lines += [f"  {command}", f"      because {action.reason}"]
    if len(moves) > 10:
        lines.append(f"  and {len(moves) - 10} more moves, {size_text(sum(a.size_bytes for a in moves[10:]))} at most")
    return lines

