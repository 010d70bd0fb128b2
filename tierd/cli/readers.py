"""``tierctl readers``: who reads the changelog of each MDT, and how far the leader is."""

from __future__ import annotations

import argparse

from tierd.cli import client
from tierd.daemon.answers import ReadersAnswer
from tierd.text import count_of


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    client.add_command(
        commands, "readers", "show the changelog readers, and the position in each MDT's changelog",
        client.showing("readers", ReadersAnswer.from_json, lines),
        "Show who reads the changelog of each MDT, the last record that tierd has, the age of the last tally, and the "
        "readers that are there.")


def lines(answer: ReadersAnswer) -> list[str]:
    if not answer.enabled:
        return ["tierd reads the changelogs itself (reader.enabled = false)"]
    shown = [f"{'MDT':8} {'reader':16} {'record':>14} {'behind':>9} {'last tally':>11}  problem"]
    for row in answer.mdts:
        age = "never" if row.age_seconds is None else f"{row.age_seconds:.0f} s ago"
        behind = "?" if row.behind_records is None else f"{row.behind_records}"
        shown.append(f"{row.mdt:8} {row.reader or '-':16} {row.position:14} {behind:>9} {age:>11}  "
                     f"{row.problem}".rstrip())
    shown.append("")
    if not answer.readers:
        shown.append("no reader has described itself in the last 20 s")
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
