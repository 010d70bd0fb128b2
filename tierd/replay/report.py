"""The result of a replay, as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence

from lustre.layout.directory import setdirstripe_arguments
from lustre.layout.setstripe import setstripe_arguments
from lustre.layout.size import size_text
from tierd.acts import ActKind
from tierd.daemon import log
from tierd.daemon.answers import to_json
from tierd.daemon.status import action_answer, finding_answer
from tierd.model import Action
from tierd.replay.run import Report
from tierd.structs import json_text
from tierd.text import count_of, quoted


def as_json(report: Report) -> str:
    return json_text({
        "tape": report.tape.name,
        "fsname": report.tape.fsname,
        "findings": [to_json(finding_answer(f)) for f in report.findings],
        "plan": [to_json(action_answer(a)) for a in report.plan],
        "refusals": list(report.refusals),
        "advice": [to_json(finding_answer(f)) for f in report.advice],
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
    lines += ["", *plan_text(report.plan)]
    lines += [f"Not done: {refusal}." for refusal in report.refusals]
    for seen in report.advice:
        lines += ["", f"Also found: {seen.kind}: {seen.sentence}."]
        lines += [f"  advice: {log.advice_sentence(advice)}" for advice in seen.advice]
    return "\n".join(lines)


def plan_text(plan: Sequence[Action]) -> list[str]:
    """The plan as commands of an administrator. Moves after the first ten are summed up."""
    if not plan:
        return ["Plan: no changes."]
    moves = [a for a in plan if a.kind == ActKind.MIGRATE]
    lines = ["Plan:"]
    for action in [a for a in plan if a.kind != ActKind.MIGRATE] + moves[:10]:
        arguments = " ".join(setstripe_arguments(action.layout) if action.striping is None
                             else setdirstripe_arguments(action.striping))
        command = {ActKind.SET_DEFAULT_LAYOUT: f"lfs setstripe {arguments} {quoted(action.directory)}",
                   ActKind.SET_DEFAULT_STRIPING: f"lfs setdirstripe {arguments} {quoted(action.directory)}",
                   ActKind.MIGRATE: f"lfs migrate --non-block {arguments} {quoted(action.path)}",
                   ActKind.ADVISE: f"(advice) lfs migrate --non-block {arguments} {quoted(action.path)}"}[action.kind]
        lines += [f"  {command}", f"      because {action.reason}"]
    if len(moves) > 10:
        size = size_text(sum(a.size_bytes for a in moves[10:]))
        lines.append(f"  and {count_of(len(moves) - 10, 'more move')}, {size} at most")
    return lines
