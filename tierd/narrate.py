"""What the daemon says: findings, acts and judgements as plain sentences for a log and a console."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lustre.layout.model import explain
from tierd.act.endings import Outcome
from tierd.act.journal import Entry
from tierd.config import Settings
from tierd.model import Action, Advice, Finding
from tierd.text import counted, percent, quoted, some
from tierd.verify.judgement import Judgement

TARGETS_NAMED = PLACES_NAMED = 16
LEFT_ALONE = {"refused", "failed", "gave-way", "doubtful", "already"}


def found(finding: Finding) -> Iterator[str]:
    """A finding that began."""
    yield f"FOUND {finding.kind}: {finding.sentence}"
    where = some(finding.directories, PLACES_NAMED) or "directories not known yet"
    on = f"on {some(finding.targets, TARGETS_NAMED)}, " if finding.targets else ""
    if finding.directories or finding.victim:
        yield f"      {on}in {where}"
    yield from (f"      advice: {advised(advice)}" for advice in finding.advice)


def over(finding: Finding) -> str:
    """A finding that no longer holds."""
    if finding.victim:
        return f"over: {finding.aggressor} no longer slows {finding.victim}"
    return f"over: {finding.kind} of {quoted(finding.subject or finding.aggressor)}"


def advised(advice: Advice) -> str:
    """What a person may do, where, and what to expect of it."""
    return f"{advice.command}, {advice.where}: {advice.effect}"


def planned(defaults: Sequence[Action], moves: Sequence[Action]) -> str:
    """What is going to be done for a finding, in one sentence."""
    places = some(action.directory for action in defaults)
    layouts = {explain(action.layout) for action in defaults}
    layout = layouts.pop() if len(layouts) == 1 else "a flash component each that holds their files"
    then = (f"; then move {counted(len(moves), 'existing file')}, {sum(a.size_bytes for a in moves) / 1e6:.0f} MB"
            if moves else "")
    return (f"PLAN: set the default layout of {counted(len(defaults), 'directory', 'directories')}, most active first "
            f"({places}), to {layout}{then}")


def default_layouts(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Default layouts that were set, would have been, or were not; those that went the same way in one sentence."""
    verb = {"done": "SET", "dry-run": "WOULD SET", "refused": "REFUSED to set", "failed": "FAILED to set"}
    groups: dict[tuple[str, str, str, str], list[Action]] = {}
    for outcome in outcomes:
        before = "none of its own" if outcome.before is None else explain(outcome.before)
        way = outcome.result, explain(outcome.action.layout), before, outcome.detail
        groups.setdefault(way, []).append(outcome.action)
    for (result, layout, before, detail), actions in groups.items():
        places = some(action.directory for action in actions)
        of = places if len(actions) == 1 else f"{len(actions)} directories ({places})"
        yield f"{verb[result]} default layout of {of}: {layout}; before: {before}{f' ({detail})' if detail else ''}"
        yield f"      because {actions[0].reason}"


def departed(finding: Finding, dropped: int) -> str:
    """Moves that were dropped since nobody reads their files any more."""
    return (f"dropped {counted(dropped, 'waiting move')}: {finding.aggressor} does nothing any more, and moving its "
            "files would only load the disks")


def recommended(actions: Sequence[Action], settings: Settings) -> Iterator[tuple[str, str, list[str]]]:
    """What a mode keeps from being done, by directory: the directory, the mode there, and the sentences."""
    for action in actions:
        if action.kind == "set-default-layout":
            mode = settings.scope_of(action.directory).mode
            what = f"default layout of {quoted(action.directory)}: {explain(action.layout)}"
            yield action.directory, mode, [f"RECOMMENDED (mode {mode}): {what}", f"      because {action.reason}"]
    moves = [a for a in actions if a.kind == "migrate"]
    for directory in dict.fromkeys(a.directory for a in moves):
        mine = [a for a in moves if a.directory == directory]
        mode = settings.scope_of(directory).mode
        files, megabytes = counted(len(mine), "existing file"), sum(a.size_bytes for a in mine) / 1e6
        what = f"move {files} of {quoted(directory)}, {megabytes:.0f} MB"
        sentence = f"RECOMMENDED (mode {mode}): {what}, to {explain(mine[0].layout)}: {mine[0].reason}"
        yield f"moves in {directory}", mode, [sentence]


def queued(moves: Sequence[Action]) -> str:
    """Moves that now wait for their turn."""
    files, megabytes = counted(len(moves), "existing file"), sum(a.size_bytes for a in moves) / 1e6
    return (f"QUEUED {files}, {megabytes:.0f} MB, to move to {explain(moves[0].layout)}: "
            f"{moves[0].reason}")


def moved(outcomes: Sequence[Outcome], waiting: int) -> Iterator[str]:
    """Moves of one cycle: those that went in one line, each of the others with its reason."""
    went = [o for o in outcomes if o.result in {"done", "dry-run"}]
    if went:
        verb = "MOVED" if went[0].result == "done" else "WOULD MOVE"
        names = ", ".join(quoted(o.action.path) for o in went[:2])
        more = f" and {len(went) - 2} more" if len(went) > 2 else ""
        pools = sorted({o.action.layout.components[0].pool for o in went})
        yield f"{verb} {names}{more} to {', '.join(pools)}; {waiting} wait"
    gone = sum(o.result == "gone" for o in outcomes)
    if gone:
        yield f"{gone} of the waiting files are gone: their job unlinked them"
    already = sum(o.result == "already" and not o.detail for o in outcomes)
    if already:
        yield f"{already} of the waiting files have the wanted layout already"
    left = Counter(o.detail for o in outcomes if o.result in LEFT_ALONE and o.detail)
    for detail, count in left.items():
        example = next(o.action.path for o in outcomes if o.detail == detail)
        yield f"left alone: {quoted(example)}{f' and {count - 1} more' if count > 1 else ''}: {detail}"


def measured_again(finding: Finding, judgement: Judgement) -> str:
    """That the moves of a case wait, since nothing was won while they went on."""
    return (f"no gain for {finding.victim} while files are moved ({judgement.after / 1e6:.1f} MB/s, "
            f"{judgement.contended / 1e6:.1f} before the act): the moves that are left wait while it is measured again")


def judged(finding: Finding, judgement: Judgement) -> str:
    """The victim's throughput before, during and after, and what follows from it."""
    numbers = (f"{finding.victim}: {judgement.usual / 1e6:.1f} MB/s before the noise, "
               f"{judgement.contended / 1e6:.1f} during, {judgement.after / 1e6:.1f} after")
    if judgement.verdict == "helped":
        return f"KEPT: it helped. {numbers} ({percent(judgement.won_back)} of the loss won back)"
    if judgement.verdict == "cannot-tell":
        return f"KEPT: it cannot be judged, since a job has gone, or what was measured cannot be believed. {numbers}"
    if judgement.verdict == "harmed-others":
        who = ", ".join(f"{quoted(job)} lost {percent(part)}" for job, part in sorted(judgement.harmed.items()))
        return f"UNDOING: others paid for it: {who}. {numbers}"
    return f"UNDOING: it did not help. {numbers}"


def undone(entry: Entry, result: str, detail: str) -> str:
    """An act taken back, or why not."""
    what = "default layout of " if entry.kind == "set-default-layout" else "layout of "
    return f"{result.upper()} {what}{quoted(entry.place)}: {detail}"
