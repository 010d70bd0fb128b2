"""``tierctl status | findings | history | pause | resume | undo``: talking to the running daemon."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from typing import Any

from tierd.config import Act
from tierd.control import ControlError, ask
from tierd.text import quoted


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command lines."""
    helps = {
        "status": "what the daemon sees and does at the moment", "findings": "what holds now, with its numbers",
        "history": "what was done, from the journal", "pause": "stop changing anything, until resume",
        "resume": "go on after a pause", "undo": "take one act of the journal back",
    }
    for name, words in helps.items():
        command = commands.add_parser(name, help=words)
        command.add_argument("--socket", default=Act().socket, metavar="PATH", help="default: %(default)s")
        command.add_argument("--json", action="store_true", help="the whole answer, for programs")
        command.set_defaults(run=run, command=name)
        if name == "pause":
            command.add_argument("reason", nargs="?", default="", help="kept and shown by status")
        if name == "undo":
            command.add_argument("id", type=int, metavar="ID", help="its number in tierctl history")
        if name == "history":
            command.add_argument("--last", type=int, default=50, metavar="N", help="how many (default: 50)")


def run(chosen: argparse.Namespace) -> int:
    """Ask and show; 1 when the daemon does not answer or refuses."""
    request = {"request": chosen.command}
    request |= {key: getattr(chosen, key) for key in ("reason", "id", "last") if hasattr(chosen, key)}
    try:
        answer = ask(chosen.socket, request)
    except ControlError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(answer, indent=1) if chosen.json else "\n".join(SHOW[chosen.command](answer)))
    return 0


def clock(seconds: float | None) -> str:
    """A time of day for people, in UTC."""
    return "never" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def status(answer: dict[str, Any]) -> list[str]:
    """The state in a few lines."""
    doing = f"paused: {answer['paused']}" if answer["paused"] else "at work"
    dry = ", dry run" if answer["dry_run"] else ""
    lines = [f"{doing}, mode {answer['mode']}{dry}; last cycle {clock(answer['last_cycle'])}"]
    lines += [f"source {source['name']}: {source['state']}" for source in answer.get("sources", ())]
    lines += [f"cannot see: {words}" for words in answer["faults"].values()]
    lines += [f"finding: {sentence}" for sentence in answer["findings"]] or ["no findings"]
    lines += [f"case: {c['aggressor']} against {c['victim']} in {', '.join(map(quoted, c['directories']))} since "
              f"{clock(c['since'])}{', judged' if c['judged'] else ', being judged'}" for c in answer["cases"]]
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(answer["outcomes"].items())) or "none"
    return [*lines, f"acts since start: {outcomes}; {answer['waiting_moves']} moves wait"]


def findings(answer: dict[str, Any]) -> list[str]:
    """Each with its numbers."""
    lines = []
    for finding in answer["findings"]:
        evidence = dict(finding["evidence"])
        lines += [f"{finding['kind']}: {evidence.pop('sentence')}", f"  targets: {', '.join(finding['targets'])}",
                  f"  directories: {', '.join(map(quoted, finding['directories'])) or 'not known'}"]
        lines += [f"  {name.replace('_', ' ')}: {value:g}" for name, value in evidence.items()]
    return lines or ["no findings"]


def history(answer: dict[str, Any]) -> list[str]:
    """One act a line, and what was there before."""
    lines = []
    for entry in answer["entries"]:
        detail = f" ({entry['detail']})" if entry["detail"] else ""
        what = f"{entry['outcome']:9} {entry['kind']} {quoted(entry['place'])}{detail}"
        lines += [f"{entry['id']:5}  {clock(entry['time'])}  {what}",
                  f"       {entry['before'] or 'no layout of its own'} -> {entry['after']}",
                  f"       because {entry['reason']}"]
    return lines or ["nothing was done yet"]


def paused(answer: dict[str, Any]) -> list[str]:
    """The state after pause and resume."""
    return [f"paused: {answer['paused']}" if answer["paused"] else "at work"]


def undone(answer: dict[str, Any]) -> list[str]:
    """How an undo went."""
    return [f"{answer['result']}: {answer['entry']['kind']} of {quoted(answer['entry']['place'])}: {answer['detail']}"]


SHOW = {"status": status, "findings": findings, "history": history, "pause": paused, "resume": paused, "undo": undone}
