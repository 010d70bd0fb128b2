"""``tierctl stages``: what jobs have staged."""

from __future__ import annotations

import argparse

from tierd.acts import OrderKind, name_of
from tierd.cli import client
from tierd.daemon.answers import StagingAnswer, StagingsAnswer


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    stages = client.add_command(
        commands, "stages", "list what jobs have staged to and from flash",
        client.showing("stage-state", StagingsAnswer.from_json, stage_lines, "job"),
        "List the last stagings of jobs: #BB_LUA stage_in and stage_out in their scripts.")
    stages.add_argument("job", nargs="?", default="", metavar="JOB", help="id of a job (default: all jobs)")


def stage_lines(answer: StagingsAnswer) -> list[str]:
    lines = [_stage_line(each) for each in answer.stagings] or ["no stagings"]
    return [*lines, f"tierd stages nothing now: {answer.held}"] if answer.held else lines


def _stage_line(each: StagingAnswer) -> str:
    order = f"  {name_of(each.finding, OrderKind.STAGING)}" if each.finding else ""
    until = f", until {client.time_text(each.deadline_at)}" if each.open else ""
    begun = client.time_text(each.created_at)
    return f"{begun}  job {each.job}  {each.user}  {each.state}{until}{order}  {each.sentence}"
