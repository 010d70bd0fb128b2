"""``tierctl explain``, ``advise``, ``plan`` and ``report``: a finding, changes by hand, the current plan, and a period.

These commands change nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter

from tierd.acts import ORDER_KINDS, ActKind
from tierd.cli import client
from tierd.cli.client import time_text, user_lines
from tierd.cli.control import fault_lines, headline, not_done_lines
from tierd.daemon import answers
from tierd.daemon.states import verdict_text
from tierd.structs import Advice
from tierd.text import bytes_text, count_of, duration_text, evidence_text, first_names, printable, quoted, shell_word


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    explain = client.add_command(
        commands, "explain", "show one finding in full: evidence, directories, acts, verdict",
        client.showing("explain", answers.ExplainAnswer.from_json, explanation, "id"),
        "Show everything in the journal about one finding (F3, from tierctl findings) or order (D3 of a drain, O3 of "
        "others), or about what caused one act (17, from tierctl history).")
    explain.add_argument("id", metavar="ID", help="name of a finding (F3) or order (D3, O3), or number of an act (17)")
    client.add_command(
        commands, "advise", "list settings of clients and jobs to change by hand",
        client.showing("advise", answers.FindingsAnswer.from_json, advice_lines),
        "List active advice: the command, where to run it, and the expected effect. tierd never changes these settings "
        "itself.")
    client.add_command(
        commands, "plan", "show what tierd would do now, and what it refuses",
        client.showing("plan", answers.PlanAnswer.from_json, plan_lines),
        "Show the plan for active findings as lfs commands, with reasons and refusals. Changes and queues nothing.")
    report = client.add_command(
        commands, "report", "show findings, acts and their effect in a period", show_report,
        "Print the findings of a period with their verdicts, from the journal. With --json, the last 500.")
    report.add_argument("--since", default="1d", metavar="WHEN", type=client.moment_option,
                        help="start: 6h, 7d, or 2026-11-20T08:00 in local time (default: %(default)s)")
    report.add_argument("--until", metavar="WHEN", type=client.moment_option,
                        help="end: 6h, 7d, or 2026-11-20T08:00 in local time (default: now)")


def explanation(answer: answers.ExplainAnswer) -> list[str]:
    case = answer.case
    now = "active" if case.active else f"ended {time_text(case.ended_at)}" if case.ended_at else "no longer active"
    head = (f"Order {case.name}, made {time_text(case.since)}." if answer.ordered
            else f"{case.name}, {case.kind}, found {time_text(case.since)}; {now}.")
    users = user_lines(answer.users, aggressor=case.aggressor, victim=case.victim)
    lines = [head, f"  {case.sentence}.", *(f"  {line}" for line in users)]
    lines += [f"  {text}." for text in [case.result_text] if text] + ["", *timeline(answer)]
    if case.evidence:
        lines += ["", "Evidence:"]
        lines += [f"  {evidence_text(name, value)}" for name, value in case.evidence.items()]
    if case.targets:
        lines += ["", f"{'Target' if answer.ordered else 'Affected targets'}: {', '.join(case.targets)}."]
    if answer.ordered:
        lines += [f"Directories: {first_names(case.directories, 16)}."] if case.directories else []
    elif case.directories:
        lines += [f"Directories of the aggressor, from the changelogs: {first_names(case.directories, 16)}."]
    elif case.aggressor and case.targets:
        lines += ["Directories of the aggressor: unknown; no changelog record names one."]
    lines += ["", *act_lines(answer), *repetition_lines(answer)]
    return [*lines, *[line for piece in case.advice for line in advice_item_lines(piece)]]


def timeline(answer: answers.ExplainAnswer) -> list[str]:
    """What happened, in the order of time: found, acts, verdict, end."""
    begun = answer.case.since
    day, zone = time_text(begun)[:10], time_text(begun)[20:]
    events = [(message.time, message.sentence) for message in answer.messages]
    moves = [act for act in answer.acts if act.kind == ActKind.MIGRATE]
    if moves:
        events.append((moves[0].time, f"first move: {quoted(moves[0].place)}: {moves[0].outcome}"))
    lines = [f"Timeline, {day} {zone}:"]
    for time, sentence in sorted(events, key=itemgetter(0)):  # of events at one time, the log comes first
        clock = clock_text(time, begun)
        after = f"+{duration_text(time - begun)}" if time >= begun + 1 else ""
        lines.append(f"  {'':{len(clock)}}  {'':>8}    {sentence.strip()}" if sentence.startswith(" ")
                     else f"  {clock}  {after:>8}  {sentence}")
    return lines


def clock_text(time: float, begun: float) -> str:
    """The time of a log line, with the date if it differs from the date of the finding.

    >>> clock_text(1_795_000_060, 1_795_000_000)[2:5]
    ':07'
    """
    return time_text(time)[11:19] if time_text(time)[:10] == time_text(begun)[:10] else time_text(time)[:19]


def repetition_lines(answer: answers.ExplainAnswer) -> list[str]:
    """Numbers of other findings with the same aggressor, victim and kind, for ``tierctl explain``."""
    number = answer.case.finding
    return [f"Found {when} as {', '.join(f'F{other.id} ({time_text(other.time)})' for other in others)}."
            for when, others in (("before", [other for other in answer.same if other.id < number]),
                                 ("again", [other for other in answer.same if other.id > number])) if others]


def act_lines(answer: answers.ExplainAnswer) -> list[str]:
    """The number of acts by outcome, and the first acts."""
    if not answer.all_acts:
        return ["No acts."]
    counts = ", ".join(f"{count} {name}" for name, count in sorted(answer.outcomes.items()))
    lines = [f"Acts: {counts}; {bytes_text(answer.bytes_moved)} moved."]
    for entry in answer.acts[:5]:
        detail = f": {entry.detail}" if entry.detail else ""
        lines.append(f"  {entry.id}  {entry.kind} {quoted(entry.place)}: {entry.outcome}{detail}")
        if entry.kind in {ActKind.SET_DEFAULT_LAYOUT, ActKind.SET_DEFAULT_STRIPING}:
            lines.append(f"      {entry.before or 'no layout of its own'} -> {entry.after or 'none'}")
    more = answer.all_acts - min(5, len(answer.acts))
    return [*lines, f"  and {more} more; tierctl history --case {answer.case.name} shows them"] if more else lines


def advice_lines(answer: answers.FindingsAnswer) -> list[str]:
    """The lines of ``tierctl advise``, one paragraph for each finding."""
    lines: list[str] = []
    for finding in answer.findings:
        about = f" ({quoted(finding.subject)})" if finding.subject else ""
        lines += [f"F{finding.finding}  {finding.kind}{about}: {finding.sentence}."]
        lines += [line for piece in finding.advice for line in advice_item_lines(piece)]
        lines += [f"  {line}" for line in not_done_lines(finding.why_not)]
    if lines:
        return lines
    return ["no advice at present" if answer.looked else "no advice yet: tierd needs two readings to compare"]


def advice_item_lines(piece: Advice) -> list[str]:
    """The command of one piece of advice, where to run it, and its effect."""
    return [f"    {piece.command}", f"      where: {piece.where}", f"      expect: {piece.effect}"]


MAX_SHOWN = 5


def plan_lines(answer: answers.PlanAnswer) -> list[str]:
    """The lines of ``tierctl plan``: for each finding the steps, the steps its mode excludes, and refusals."""
    state = answer.status
    lines = [headline(state), *fault_lines(state)]
    if not answer.plans:
        return [*lines, "no findings that tierd acts on; tierctl advise lists changes to make by hand"]
    cases: Mapping[int, answers.Case] = {case.finding: case for case in state.cases if case.state}
    for plan in answer.plans:
        finding = plan.finding
        lines += ["", f"F{finding.finding}  {finding.kind}: {finding.sentence}"]
        if (case := cases.get(plan.finding.finding)) is not None:
            follows = "" if case.judged else ": only files that became eligible since then are added"
            lines.append(f"  acted on {time_text(case.acted_at)} ({case.state_text}){follows}")
        lines += step_lines(plan.actions, "  ")
        if plan.recommended:
            lines += ["  not done because of the mode:", *step_lines(plan.recommended, "    ")]
        lines += [f"  not done: {refusal}" for refusal in plan.refusals]
        if not (plan.actions or plan.recommended or plan.refusals):
            lines.append("  nothing to do: all planned layouts are in place")
    return lines


COMMANDS: Mapping[str, str] = {
    ActKind.SET_DEFAULT_LAYOUT: "lfs setstripe", ActKind.SET_DEFAULT_STRIPING: "lfs setdirstripe",
    ActKind.MIGRATE: "lfs migrate --non-block"}


def step_lines(actions: Sequence[answers.ActionAnswer], indent: str) -> list[str]:
    """Actions as lfs commands; only the first moves."""
    lines = []
    moves = [a for a in actions if a.action == ActKind.MIGRATE]
    for action in [a for a in actions if a.action != ActKind.MIGRATE] + moves[:MAX_SHOWN]:
        place = shell_word(action.path or action.directory)
        command = COMMANDS.get(action.action, "(advice) lfs migrate --non-block")
        lines += [f"{indent}{command} {action.layout} {place}", f"{indent}    because {action.reason}"]
    if len(moves) > MAX_SHOWN:
        rest = moves[MAX_SHOWN:]
        lines.append(f"{indent}and {count_of(len(rest), 'more move')}, {bytes_text(sum(a.size_bytes for a in rest))}")
    return lines


def show_report(chosen: argparse.Namespace) -> int:
    now = datetime.now(UTC).timestamp()
    try:
        until = client.moment(chosen.until, now) if chosen.until else now
        since = client.moment(chosen.since, until)
        if since >= until:
            raise ValueError(f"--since {chosen.since} is not before --until")
    except ValueError as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    return client.ask_and_show(chosen, {"request": "report", "since": since, "until": until},
                               answers.ReportAnswer.from_json, report_lines)


def summary_sentence(answer: answers.ReportAnswer) -> str:
    """Findings, acts and verdicts of the period in a sentence."""
    found = ", ".join(f"{count} {kind}" for kind, count in answer.kinds.items()) or "nothing found"
    judged = ", ".join(f"{count} {verdict_text(name)}" for name, count in answer.verdicts.items())
    after = f"; verdicts: {judged}" if judged else ""
    moved = f"{count_of(answer.all_acts, 'act')}, {count_of(answer.files_moved, 'file')} moved"
    return f"{found}; {moved}, {bytes_text(answer.bytes_moved)}{after}."


MAX_REPORTED = 20
"""Findings that ``tierctl report`` prints."""


def report_lines(answer: answers.ReportAnswer, time_text: Callable[[float], str] = client.time_text) -> list[str]:
    """The report in short: the sums of the period, and the last findings that are not advice, each with its verdict."""
    acted = [case for case in answer.cases if case.state or case.victim]
    begun = answer.until if answer.recorded_since is None else answer.recorded_since
    late = f" (no record before {time_text(begun)})" if begun > answer.since + 120 else ""
    lines = [f"{time_text(answer.since)} to {time_text(answer.until)}{late}; {headline(answer.status)}",
             summary_sentence(answer)]
    for case in acted[-MAX_REPORTED:]:
        lines += [f"{case.name}  {time_text(case.since)}  {case.kind}: {case.sentence}", f"    {case.result_text}"]
    left = sum(count for kind, count in answer.kinds.items() if kind not in ORDER_KINDS) - min(len(acted), MAX_REPORTED)
    return [*lines, f"and {count_of(left, 'finding')} more"] if left else lines
