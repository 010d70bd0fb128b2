"""``tierctl explain ID``: one finding from its numbers to the verdict. ``tierctl advise``: what to change by hand."""

from __future__ import annotations

import argparse

from tierd.commands import asking
from tierd.commands.asking import Answer, clock, megabytes
from tierd.commands.evidence import described
from tierd.commands.verdicts import verdict as words
from tierd.text import quoted, some


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command lines."""
    explain = commands.add_parser(
        "explain", help="all about one finding or act: numbers, where it comes from, what was done, did it help",
        description="All the journal knows about one finding (F3, from tierctl findings) or about the finding behind "
                    "one act (17, from tierctl history).")
    explain.add_argument("id", metavar="ID", help="F3 for a finding, 17 for an act")
    asking.options(explain)
    explain.set_defaults(run=lambda chosen: asking.asked(chosen, {"request": "explain", "id": chosen.id}, shown))
    advise = commands.add_parser(
        "advise", help="what to change by hand: settings of clients and jobs, which tierd never changes itself",
        description="What the advisers see now, each with the command to type, where, and what to expect of it.")
    asking.options(advise)
    advise.set_defaults(run=lambda chosen: asking.asked(chosen, {"request": "advise"}, advice))


def shown(answer: Answer) -> list[str]:
    """The story of a finding."""
    finding = answer["finding"]
    now = "it holds now" if answer["holds"] else "it no longer holds"
    since = f"made {clock(finding['time'])}" if answer["ordered"] else f"found {clock(finding['time'])}; {now}"
    lines = [f"F{finding['id']}, {finding['kind']}, {since}."]
    lines += [f"  {finding['sentence']}."]
    if finding["evidence"]:
        lines += ["", "The numbers that made it:"]
        lines += [f"  {described(name, value)}" for name, value in finding["evidence"].items()]
    if finding["targets"]:
        lines += ["", f"Where it is felt: {', '.join(finding['targets'])}."]
    if finding["directories"]:
        lines += [f"Where it comes from, by the changelogs: {some(finding['directories'], 16)}."]
    elif finding["aggressor"] and finding["targets"]:
        lines += ["Where it comes from: no changelog has said."]
    if answer["told"]:
        lines += ["", "What was thought and done:"]
        lines += [f"  {hour(told['time'], finding['time'])}  {told['sentence']}" for told in answer["told"]]
    lines += ["", *acts(answer), *verdict(answer), *at_other_times(answer)]
    return [*lines, *[line for piece in answer["advice"] for line in advised(piece)]]


def hour(time: float, begun: float) -> str:
    """A time of the story; with the day, where that is not the one on which it began.

    >>> hour(1_795_000_060, 1_795_000_000), hour(1_795_050_000, 1_795_000_000)
    ('11:07:40', '2026-11-19 01:00:00')
    """
    return clock(time)[11:19] if clock(time)[:10] == clock(begun)[:10] else clock(time)[:19]


def at_other_times(answer: Answer) -> list[str]:
    """The numbers under which the same trouble stands, each of which can be asked for."""
    def named(others: list[Answer]) -> str:
        acts = {other["id"]: f", {other['acts']} acts" if other["acts"] else "" for other in others}
        return ", ".join(f"F{other['id']} ({clock(other['time'])}{acts[other['id']]})" for other in others)

    number = answer["finding"]["id"]
    before = [other for other in answer["same"] if other["id"] < number]
    after = [other for other in answer["same"] if other["id"] > number]
    return ([f"Found before as {named(before)}."] if before else []) + (
        [f"Found again as {named(after)}."] if after else [])


def acts(answer: Answer) -> list[str]:
    """What was done, in numbers, and the first of it."""
    if not answer["all_acts"]:
        return ["No act was done for it."]
    counts = ", ".join(f"{count} {name}" for name, count in sorted(answer["outcomes"].items()))
    lines = [f"Acts: {counts}; {megabytes(answer['bytes_moved'])} moved."]
    for entry in answer["acts"][:5]:
        detail = f": {entry['detail']}" if entry["detail"] else ""
        lines.append(f"  {entry['id']}  {entry['kind']} {quoted(entry['place'])}: {entry['outcome']}{detail}")
        if entry["kind"] == "set-default-layout":
            lines.append(f"      {entry['before'] or 'no layout of its own'} -> {entry['after'] or 'none'}")
    more = answer["all_acts"] - min(5, len(answer["acts"]))
    return [*lines, f"  and {more} more; tierctl history shows them"] if more else lines


def verdict(answer: Answer) -> list[str]:
    """What was measured afterwards."""
    lines = []
    for found in answer["judgements"]:
        lines.append(f"Verdict, {clock(found['time'])}: {words(found['verdict'])}. The victim had "
                     f"{megabytes(found['usual'])}/s before, {megabytes(found['contended'])}/s during, "
                     f"{megabytes(found['after'])}/s after.")
    if not lines and answer["all_acts"] and answer["finding"]["victim"]:
        lines = ["Verdict: none yet."]
    return lines


def advice(answer: Answer) -> list[str]:
    """Advice, a paragraph each."""
    lines: list[str] = []
    for finding in answer["findings"]:
        about = f" ({quoted(finding['subject'])})" if finding["subject"] else ""
        lines += [f"F{finding['id']}  {finding['kind']}{about}: {finding['evidence']['sentence']}."]
        lines += [line for piece in finding["advice"] for line in advised(piece)]
    if lines:
        return lines
    return ["no advice at present" if answer["looked"] else "no advice yet: tierd needs two looks to compare"]


def advised(piece: Answer) -> list[str]:
    """One piece of advice."""
    return [f"    {piece['command']}", f"      where: {piece['where']}", f"      expect: {piece['effect']}"]
