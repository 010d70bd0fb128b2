"""``tierctl plan``: what tierd would do at this moment, and what keeps it from it. Changes nothing."""

from __future__ import annotations

import argparse

from tierd.commands import asking
from tierd.commands.asking import Answer, clock, megabytes
from tierd.commands.daemon import headline
from tierd.commands.verdicts import verdict
from tierd.text import shell_word

MOST_SHOWN = 5


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line."""
    plan = commands.add_parser("plan", help="what would be done now, without doing it, and what speaks against it",
                               description="Plans for what is found now, as the next cycle would, and shows it as the "
                                           "commands of lfs it comes to. Changes nothing, and queues nothing.")
    asking.options(plan)
    plan.set_defaults(run=lambda chosen: asking.asked(chosen, {"request": "plan"}, shown))


def shown(answer: Answer) -> list[str]:
    """For each finding: steps, what the mode keeps back, refusals."""
    state = answer["status"]
    lines = [headline(state)]
    lines += [f"CANNOT: {words}" for words in state["faults"].values()]
    if not answer["plans"]:
        return [*lines, "nothing is found that tierd would act on; tierctl advise shows what you may change by hand"]
    for plan in answer["plans"]:
        finding = plan["finding"]
        lines += ["", f"F{finding['id']}  {finding['kind']}: {finding['evidence']['sentence']}"]
        if plan["case"]:
            acted = f"{clock(plan['case']['since'])} ({verdict(**plan['case']['outcome'])})"
            follows = "only files that have settled since follow"
            lines.append(f"  acted on {acted}" + ("" if plan["case"]["outcome"]["judged"] else f": {follows}"))
        lines += steps(plan["actions"], "  ")
        if plan["recommended"]:
            lines += ["  kept back by the mode there:", *steps(plan["recommended"], "    ")]
        lines += [f"  not done: {refusal}" for refusal in plan["refusals"]]
        if not (plan["actions"] or plan["recommended"] or plan["refusals"]):
            lines.append("  nothing to do: what would help is there already")
    return lines


def steps(actions: list[Answer], indent: str) -> list[str]:
    """Actions as commands; of moves the first few."""
    lines = []
    moves = [a for a in actions if a["action"] == "migrate"]
    for action in [a for a in actions if a["action"] != "migrate"] + moves[:MOST_SHOWN]:
        place = shell_word(action.get("path") or action["directory"])
        command = {"set-default-layout": "lfs setstripe", "migrate": "lfs migrate --non-block"}.get(
            action["action"], "(advice) lfs migrate --non-block")
        lines += [f"{indent}{command} {action['layout']} {place}", f"{indent}    because {action['reason']}"]
    if len(moves) > MOST_SHOWN:
        rest = moves[MOST_SHOWN:]
        lines.append(f"{indent}and {len(rest)} more moves, {megabytes(sum(a['size_bytes'] for a in rest))}")
    return lines
