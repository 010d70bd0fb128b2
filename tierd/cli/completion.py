"""``tierctl completion``: print completions of tierctl for a shell."""

from __future__ import annotations

import argparse
from pathlib import Path

SHELLS = ("bash", "zsh", "fish")
FILE_NAMES = frozenset({"FILE", "PATH", "TAPE", "SCENARIO"})
"""Arguments with these names are completed with names of files."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    completion = commands.add_parser(
        "completion", help="print completions for a shell",
        description="Print completions of tierctl for a shell. The packages install them. By hand: "
                    "source <(tierctl completion bash), tierctl completion zsh > ~/.zfunc/_tierctl, or "
                    "tierctl completion fish > ~/.config/fish/completions/tierctl.fish.")
    completion.add_argument("shell", choices=SHELLS, help="shell that reads the completions")
    completion.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    from tierd.cli.tierctl import parser  # noqa: PLC0415 -- it imports this module

    print(completions(parser(), chosen.shell))
    return 0


def completions(parser: argparse.ArgumentParser, shell: str) -> str:
    import shtab  # noqa: PLC0415 -- only here

    name_files(parser, shtab.FILE)
    return str(shtab.complete(parser, shell=shell))


def name_files(parser: argparse.ArgumentParser, files: object) -> None:
    """Mark the arguments that are names of files, in the parser and in its commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                name_files(command, files)
        elif action.type is Path or str(action.metavar) in FILE_NAMES:
            action.complete = files  # type: ignore[attr-defined]  # an attribute of shtab
