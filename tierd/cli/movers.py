"""``tierctl movers`` and ``tierctl readers``: movers, standbys and changelog readers on other nodes."""

from __future__ import annotations

import argparse

from tierd.cli import client
from tierd.daemon.answers import MoverAnswer, MoversAnswer, ReadersAnswer, StandbyAnswer, StandbyRow
from tierd.text import bytes_text, count_of, duration_text, table

LOST_SECONDS = 15.0
"""A mover reports every five seconds."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    client.add_command(
        commands, "movers", "list the movers on other nodes, and the moves that were sent to them",
        client.showing("movers", MoversAnswer.from_json, mover_lines),
        "List the movers that work for the leader of this file system through NATS, with the files that they moved, "
        "and the moves under way by source target.")
    client.add_command(
        commands, "readers", "show the changelog readers, and the position in each MDT's changelog",
        client.showing("readers", ReadersAnswer.from_json, reader_lines),
        "Show who reads the changelog of each MDT, the last record that tierd has, the age of the last tally, and the "
        "readers that are there.")


def mover_lines(answer: MoversAnswer) -> list[str]:
    if not answer.cluster:
        return ["tierd moves files in its own process: it has no [cluster] in its settings, or it is in a dry run."]
    lines = [f"NATS: {answer.trouble or 'connected'}; {count_of(len(answer.movers), 'mover')}; "
             f"{count_of(sum(answer.under_way.values()), 'file')} under way"
             + (f", the oldest for {answer.oldest_seconds:.0f} s" if answer.under_way else "")]
    lines += [_line(mover, answer.time) for mover in answer.movers]
    lines += [f"  {target}: {count_of(files, 'file')} under way" for target, files in sorted(answer.under_way.items())]
    lines += [standby_line(standby) for standby in answer.standbys] or ["  no standby"]
    lines.append(f"since the start: {answer.redelivered} messages delivered again, {answer.stale} moves stale, "
                 f"{answer.expired} without a result in time; {count_of(answer.journal_lag, 'change')} of the "
                 "journal not copied yet")
    return lines


def standby_line(standby: StandbyRow) -> str:
    state = f"CANNOT LEAD: {standby.problem}" if standby.problem else "ready to lead"
    return f"  standby {standby.name} on {standby.host}: {state}; {copy_text(standby)}"


def copy_text(standby: StandbyRow | StandbyAnswer) -> str:
    """How far the copy of the journal is.

    >>> copy_text(StandbyRow(name="b", host="b", behind_messages=0, copy_age_seconds=1.0))
    'its copy of the journal is complete'
    >>> copy_text(StandbyRow(name="b", host="b", behind_messages=7, copy_age_seconds=90.0))
    'its copy of the journal lacks 7 messages, and was complete 90 s ago'
    >>> copy_text(StandbyRow(name="b", host="b"))
    'its copy of the journal was never complete since its start'
    """
    if standby.behind_messages == 0 and standby.copy_age_seconds is not None:
        return "its copy of the journal is complete"
    lacks = f"lacks {count_of(standby.behind_messages, 'message')}" if standby.behind_messages else ""
    last = ("was never complete since its start" if standby.copy_age_seconds is None
            else f"was complete {duration_text(standby.copy_age_seconds)} ago")
    return f"its copy of the journal {', and '.join(filter(None, (lacks, last)))}"


def _line(mover: MoverAnswer, now: float) -> str:
    state = f"STOPPED: {mover.stopped}" if mover.stopped else "working"
    if not mover.stopped and now - mover.seen > LOST_SECONDS:
        state = f"no sign of it for {duration_text(now - mover.seen)}"
    results = ", ".join(f"{count} {word}" for word, count in sorted(mover.results.items())) or "no files yet"
    return (f"  {mover.name} on {mover.host}, {count_of(mover.threads, 'thread')}, {mover.engine}: {state}; "
            f"{mover.under_way} under way; {results}; {bytes_text(mover.copied_bytes)} copied")


def reader_lines(answer: ReadersAnswer) -> list[str]:
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
                     f"{client.time_text(reader.started)}, {waiting} waiting for tierd"
                     + (f"; {reader.problem}" if reader.problem else ""))
    dropped = {name: count for name, count in answer.tallies.items() if name != "added" and count}
    if dropped:
        shown.append("tallies not added: " + ", ".join(f"{count} {name}" for name, count in sorted(dropped.items())))
    return shown
