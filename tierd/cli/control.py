"""Show and control the daemon: ``status``, ``findings``, ``history``, ``pause``, ``apply``, ``undo`` and others.

``movers`` and ``readers`` show what works for it on other nodes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from tierd.acts import ActKind, Outcome
from tierd.cli import client
from tierd.cli.client import positive, time_text, user_lines
from tierd.daemon import answers
from tierd.text import bytes_text, count_of, duration_text, evidence_text, first_names, percent, quoted, table

OUTCOMES = tuple(outcome.value for outcome in Outcome)
ACTS = tuple(kind.value for kind in ActKind)
FILTERS = "last", "outcome", "act", "path", "job", "case", "since"
"""What ``tierctl history`` sends."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    client.add_command(commands, "status", "show what tierd does, findings and the queue",
                       client.showing("status", status_from_json, status_lines))
    findings = client.add_command(
        commands, "findings", "list active findings with their evidence", lambda chosen: client.ask_and_show(
            chosen, {"request": "findings"}, answers.FindingsAnswer.from_json, partial(finding_lines, job=chosen.job)))
    findings.add_argument("--job", default="", metavar="JOB",
                          help="show only findings with this job as aggressor or victim")
    add_history(client.add_command(commands, "history", "list acts from the journal", run_history))
    state = answers.OperatingStateAnswer.from_json
    pause = client.add_command(commands, "pause", "stop all changes until resume, also across restarts",
                               client.changing("pause", state, "reason", "seconds"))
    pause.add_argument("--for", dest="seconds", type=client.duration_seconds, metavar="TIME",
                       help="resume by itself after this time: 30m, 2h, 1d")
    drain = client.add_command(
        commands, "drain", "finish the queue and start no new acts until resume", lambda chosen: client.ask_and_wait(
            chosen, lambda: client.changing("drain", state, "reason")(chosen), waits=chosen.wait))
    for command in (pause, drain):
        command.add_argument("reason", nargs="?", default="", help="reason that tierctl status shows, in quotes")
    client.add_wait_option(drain)
    client.add_command(commands, "resume", "continue after pause, drain or an open circuit breaker",
                       client.changing("resume", state))
    for name, words in (
            ("apply", "carry out the plan that waits for approval (F3), or repeat what was undone"),
            ("decline", "put the plan that waits for approval (F3) aside for a day")):
        decide = client.add_command(commands, name, words,
                                    client.changing(name, answers.DecisionAnswer.from_json, "id"))
        decide.add_argument("id", metavar="FINDING", help="F3: number in tierctl status")
    undo = client.add_command(
        commands, "undo", "undo one act (17) or all directory defaults of a finding (F3) or order (O3)",
        client.changing("undo", answers.undo_from_json, "id"))
    undo.add_argument("id", metavar="ID",
                      help="17: undo this act from tierctl history; F3: restore the directory defaults of this finding "
                           "and drop its queued moves (moved files stay)")
    client.add_command(
        commands, "movers", "list the movers on other nodes, and the moves that were sent to them",
        client.showing("movers", answers.MoversAnswer.from_json, mover_lines),
        "List the movers that work for the leader of this file system through NATS, with the files that they moved, "
        "and the moves under way by source target.")
    client.add_command(
        commands, "readers", "show the changelog readers, and the position in each MDT's changelog",
        client.showing("readers", answers.ReadersAnswer.from_json, reader_lines),
        "Show who reads the changelog of each MDT, the last record that tierd has, the age of the last tally, and the "
        "connected readers.")


def add_history(history: argparse.ArgumentParser) -> None:
    history.add_argument("--last", type=positive, default=20, metavar="N",
                         help="number of acts to show (default: %(default)s)")
    history.add_argument("--outcome", default="", choices=OUTCOMES, metavar="OUTCOME",
                         help=f"show only acts with this outcome: {', '.join(OUTCOMES)}")
    history.add_argument("--act", default="", choices=ACTS, metavar="ACT",
                         help=f"show only acts of this kind: {', '.join(ACTS)}")
    history.add_argument("--path", metavar="PATH",
                         help="show only acts on this path, from the root of the file system, or below it")
    history.add_argument("--job", metavar="JOB",
                         help="show only acts because of a finding with this job as aggressor or victim")
    history.add_argument("--case", default="", metavar="NAME",
                         help="show only acts of this finding (F3) or order (D3, O3)")
    history.add_argument("--since", type=client.moment_option, metavar="WHEN",
                         help="show only acts since: 6h, 7d, or 2026-11-20T08:00 in local time")
    history.add_argument("--long", action="store_true", help="show layouts before and after, and the reason")


def run_history(chosen: argparse.Namespace) -> int:
    chosen.since = client.moment(chosen.since, datetime.now(UTC).timestamp()) if chosen.since else None
    return client.showing("history", answers.HistoryAnswer.from_json, partial(
        history_lines, last=chosen.last, long=chosen.long), *FILTERS)(chosen)


def headline(answer: answers.StatusAnswer) -> str:
    word, why = answer.restraint
    rest = f"{count_of(answer.waiting_moves, 'move')} left" if answer.waiting_moves else "the queue is empty"
    more = {"PAUSED": " (tierctl resume ends the pause)" if answer.paused else "",
            "DRAINING": f"; {rest} (tierctl resume ends the drain)"}
    doing = f"{word}: {why}{more.get(word, '')}" if word else "running"
    dry = ", dry run: nothing is changed" if answer.dry_run else ""
    return f"{doing}; mode {answer.mode}{dry}"


def fault_lines(answer: answers.StatusAnswer) -> list[str]:
    """The faults that the headline does not name."""
    return [f"CANNOT: {words}" for words in answer.faults.values() if words != answer.blocked]


def status_from_json(data: answers.Json) -> answers.StatusAnswer | answers.StandbyAnswer:
    """The status of a tierd that leads or works alone, or that of a standby. Raises ValueError."""
    return answers.StandbyAnswer.from_json(data) if data.get("standing_by") else answers.StatusAnswer.from_json(data)


def status_lines(answer: answers.StatusAnswer | answers.StandbyAnswer) -> list[str]:
    if isinstance(answer, answers.StandbyAnswer):
        leads = f"{answer.leader} leads, generation {answer.generation}" if answer.leader else "no leader"
        return [f"STANDING BY for {answer.fs}; {leads}", *(f"CANNOT LEAD: {why}" for why in answer.faults.values()),
                f"{copy_text(answer)} (message {answer.position})"]
    lines = [headline(answer), *(f"  in {quoted(path)}: mode {mode}" for path, mode in answer.scopes.items()),
             *fault_lines(answer), *(f"source {source.name}: {source.state}" for source in answer.sources)]
    age = f", {duration_text(answer.time - answer.last_cycle)} ago" if answer.last_cycle else ""
    lines.append(f"last reading {time_text(answer.last_cycle)}{age}")
    lines += answer.busy
    lines += [f"STALLED: {words}" for words in answer.stalled]
    if answer.windows < answer.least_windows:
        lines.append(f"learning: {answer.windows} of the {answer.least_windows} readings that a judgement of streams "
                     "needs")
    elif (not answer.device_time and answer.looking_since
          and answer.time - answer.looking_since < answer.history_seconds):
        lines.append(f"learning: observing since {time_text(answer.looking_since)}; until a stream runs, the cost of "
                     "operations on the targets is unknown and no aggressor is found")
    lines += case_lines(answer)
    lines += [f"drain of {target}: {answers.DRAIN_STATES[phase]} (tierctl drain-target)"
              for target, phase in answer.drains.items()]
    if answer.advice:
        lines.append(f"advice: {answer.advice}; see tierctl advise")
    lines += device_time_lines(answer.device_time)
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(answer.outcomes.items())) or "none"
    lines += [f"acts since start: {outcomes}; {bytes_text(answer.moved_bytes)} moved"
              + (f"; {count_of(answer.needless_moves, 'queued move')} needed no act" if answer.needless_moves else ""),
              queue_line(answer)]
    if answer.moves_to_requeue:
        lines.append(f"  {count_of(answer.moves_to_requeue, 'move')} from before the restart to be checked again")
    if answer.moves_not_persisted:
        moves = count_of(answer.moves_not_persisted, "move")
        lines.append(f"  {moves} not stored in the journal (limit reached) and lost at a restart")
    return [*lines, *(f"not requeued after the restart: {count}: {why}" for why, count in answer.not_requeued.items())]


def case_lines(answer: answers.StatusAnswer) -> list[str]:
    """Each finding that holds with what is done about it and why not more; then cases whose finding has ended."""
    lines: list[str] = []
    for case in answer.cases:
        if case.active:
            lines += [f"finding F{case.finding}: {case.sentence}", f"  {case_line(case)}",
                      *not_done_lines(case.why_not)]
    if not lines:
        lines.append("no findings yet: learning" if answer.learning else "no findings")
    lines += [case_line(case) for case in answer.cases if not case.active]
    users = [f"{job} is {user}" for job, user in answer.users.items() if not user.isdigit()]
    more = f", and {len(users) - MAX_USERS} more" if len(users) > MAX_USERS else ""
    return [*lines, f"users: {', '.join(users[:MAX_USERS])}{more}"] if users else lines


MAX_USERS = 8
"""Users that ``tierctl status`` names."""


def case_line(case: answers.Case) -> str:
    """What is done about one finding, in the words that the page uses."""
    who = " against ".join(filter(None, (case.aggressor, case.victim))) or case.subject
    place = f" in {first_names(case.directories)}" if case.directories else ""
    return f"case F{case.finding}: {who}{place}, found {time_text(case.since)}: {case.done_text}"


BAR_CHARACTERS = 20
MARKS = "#=+-"
"""One mark for each job of a bar, in order of their shares; ``.`` is the time of other jobs, blank is idle time."""


def device_time_lines(rows: Sequence[answers.TargetTimeRow]) -> list[str]:
    """One bar for each of the busiest targets: its device time by job.

    >>> from tierd.daemon.answers import JobTimeRow
    >>> jobs = JobTimeRow("ior.1", 0.6, 0.1), JobTimeRow("fio.2", 0.35, 0.1)
    >>> for line in device_time_lines([answers.TargetTimeRow("lustre-OST0002", 0.9, jobs)]):
    ...     print(line)
    device time of the busiest targets, by job:
      lustre-OST0002  |###########======.  |   90%  # ior.1 60%, = fio.2 35% (±10%)
    """
    if not rows:
        return []
    lines = ["device time of the busiest targets, by job:"]
    width = max(len(row.target) for row in rows)
    for row in rows:
        busy = min(row.utilisation, 1.0)
        bar = "".join(mark * round(BAR_CHARACTERS * busy * job.share)
                      for mark, job in zip(MARKS, row.jobs, strict=False))
        bar = bar[:BAR_CHARACTERS].ljust(round(BAR_CHARACTERS * busy), ".").ljust(BAR_CHARACTERS)
        jobs = ", ".join(f"{mark} {job.job} {percent(job.share)}" for mark, job in zip(MARKS, row.jobs, strict=False))
        error = max((job.error for job in row.jobs), default=0.0)
        lines.append(f"  {row.target:<{width}}  |{bar}|  {percent(busy):>4}  {jobs} (±{percent(error)})")
    return lines


def not_done_lines(whys: Sequence[answers.RefusalAnswer]) -> list[str]:
    """The reasons why tierd does not act on a finding, or not fully, each with its remedy."""
    return [f"  not done: {why.sentence}" + (f"; to change that: {why.remedy}" if why.remedy else "") for why in whys]


def queue_line(answer: answers.StatusAnswer) -> str:
    """The length of the queue and the limit that delays it."""
    limit = f" ({answer.waits_for})" if answer.waits_for else ""
    waits = (f"{count_of(answer.waiting_moves, 'move')} queued, {bytes_text(answer.waiting_bytes)}{limit}"
             if answer.waiting_moves else "no moves queued")
    orders = f"; {count_of(answer.waiting_orders, 'order')} queued" if answer.waiting_orders else ""
    return waits + orders


def finding_lines(answer: answers.FindingsAnswer, job: str = "") -> list[str]:
    """Each finding, or each about a job, with its targets, directories and evidence."""
    lines: list[str] = []
    chosen = [finding for finding in answer.findings if not job or job in {finding.aggressor, finding.victim}]
    for finding in chosen:
        lines += [f"F{finding.finding}  {finding.kind}: {finding.sentence}",
                  *(f"    {line}" for line in user_lines(answer.users, aggressor=finding.aggressor,
                                                         victim=finding.victim)),
                  f"    targets: {', '.join(finding.targets) or 'not known'}"]
        if not finding.advice_only:
            lines.append(f"    directories: {first_names(finding.directories, 16) or 'not known'}")
        lines += [f"    {evidence_text(name, value)}" for name, value in finding.evidence.items()]
        lines += [f"  {line}" for line in not_done_lines(finding.why_not)]
    if not answer.looked:
        return ["no findings yet: tierd needs two readings to compare"]
    if not lines:
        return [f"no finding is about {quoted(job)} now, {count_of(len(answer.findings), 'finding')} about others; "
                "earlier ones: tierctl report" if job else "no findings"]
    return [*lines, f"details: tierctl explain F{chosen[0].finding}"]


def history_lines(answer: answers.HistoryAnswer, *, last: int, long: bool) -> list[str]:
    if not answer.entries:
        ended = ", ".join(f"{count} {outcome}" for outcome, count in sorted(answer.all_outcomes.items()))
        return [f"no matching acts; all outcomes: {ended}" if ended else "no acts yet"]
    begins, lines = answer.complete_since, list[str]()
    if long:
        for e in answer.entries:
            detail = f" ({e.detail})" if e.detail else ""
            lines += [f"{e.id:5}  {time_text(e.time)}  {e.outcome:9} {e.kind} {quoted(e.place)}{detail}",
                      f"       {e.before or 'no layout of its own'} -> {e.after or 'none'}",
                      f"       because {e.reason}"]
    else:
        lines = table(("ID", "time", "outcome", "act", "path", "detail"), [
            (e.id, time_text(e.time), e.outcome, e.kind, quoted(e.place),
             e.detail or (e.after or "" if e.kind == ActKind.SET_DEFAULT_LAYOUT else bytes_text(e.size_bytes)))
            for e in answer.entries], right=[0])
    if len(answer.entries) >= last:
        lines.append(f"the last {count_of(last, 'act')} that match; --last N shows more")
    return lines if begins is None else [*lines, f"the journal begins {time_text(begins)}"]


LOST_SECONDS = 15.0
"""A mover reports every five seconds."""


def mover_lines(answer: answers.MoversAnswer) -> list[str]:
    if not answer.cluster:
        return ["tierd moves files in its own process: it has no [cluster] in its settings, or it is in a dry run."]
    lines = [f"NATS: {answer.trouble or 'connected'}; {count_of(len(answer.movers), 'mover')}; "
             f"{count_of(sum(answer.under_way.values()), 'file')} under way"
             + (f", the oldest for {answer.oldest_seconds:.0f} s" if answer.under_way else "")]
    lines += [mover_line(mover, answer.time) for mover in answer.movers]
    lines += [f"  {target}: {count_of(files, 'file')} under way" for target, files in sorted(answer.under_way.items())]
    lines += [standby_line(standby) for standby in answer.standbys] or ["  no standby"]
    return [*lines, f"{count_of(answer.journal_lag, 'change')} of the journal not copied yet"]


def standby_line(standby: answers.StandbyRow) -> str:
    state = f"CANNOT LEAD: {standby.problem}" if standby.problem else "ready to lead"
    return f"  standby {standby.name} on {standby.host}: {state}; {copy_text(standby)}"


def copy_text(standby: answers.StandbyRow | answers.StandbyAnswer) -> str:
    """How far the copy of the journal is.

    >>> copy_text(answers.StandbyRow(name="b", host="b", behind_messages=0, copy_age_seconds=1.0))
    'its copy of the journal is complete'
    >>> copy_text(answers.StandbyRow(name="b", host="b", behind_messages=7, copy_age_seconds=90.0))
    'its copy of the journal lacks 7 messages, and was complete 90 s ago'
    >>> copy_text(answers.StandbyRow(name="b", host="b"))
    'its copy of the journal was never complete since its start'
    """
    if standby.behind_messages == 0 and standby.copy_age_seconds is not None:
        return "its copy of the journal is complete"
    lacks = f"lacks {count_of(standby.behind_messages, 'message')}" if standby.behind_messages else ""
    last = ("was never complete since its start" if standby.copy_age_seconds is None
            else f"was complete {duration_text(standby.copy_age_seconds)} ago")
    return f"its copy of the journal {', and '.join(filter(None, (lacks, last)))}"


def mover_line(mover: answers.MoverAnswer, now: float) -> str:
    state = f"STOPPED: {mover.stopped}" if mover.stopped else "working"
    if not mover.stopped and now - mover.seen > LOST_SECONDS:
        state = f"not heard from for {duration_text(now - mover.seen)}"
    results = ", ".join(f"{count} {word}" for word, count in sorted(mover.results.items())) or "no files yet"
    return (f"  {mover.name} on {mover.host}, {count_of(mover.threads, 'thread')}, {mover.engine}: {state}; "
            f"{mover.under_way} under way; {results}; {bytes_text(mover.copied_bytes)} copied")


def reader_lines(answer: answers.ReadersAnswer) -> list[str]:
    if not answer.enabled:
        return ["tierd reads the changelogs itself (reader.enabled = false)"]
    shown = [*table(("MDT", "reader", "record", "behind", "last tally", "problem"), [
        (row.mdt, row.reader or "-", row.position, "?" if row.behind_records is None else row.behind_records,
         "never" if row.age_seconds is None else f"{row.age_seconds:.0f} s ago", row.problem)
        for row in answer.mdts], right=[2, 3, 4]), ""]
    if not answer.readers:
        shown.append("no reader has reported in the last 20 s")
    for reader in answer.readers:
        mdts = ", ".join(reader.mdts) or "nothing: others hold the leases"
        waiting = count_of(reader.waiting, "tally", "tallies")
        shown.append(f"{reader.name} on {reader.host}: reads {mdts}; {count_of(reader.records, 'record')} since "
                     f"{time_text(reader.started)}, {waiting} waiting for tierd"
                     + (f"; {reader.problem}" if reader.problem else ""))
    return shown
