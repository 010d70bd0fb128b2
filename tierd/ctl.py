"""The command ``tierctl``: what an administrator asks of tierd, of layouts and of the simulator."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lustre import __version__
from tierd.commands import daemon, evaluate, layout, simulate

EXAMPLES = """\
examples:
  tierctl status                                         what the daemon sees and does
  tierctl history; tierctl undo 17                       what was done; take one act back
  tierctl pause "maintenance until noon"                 change nothing until tierctl resume
  tierctl layout /mnt/lustre/proj/run7/out.dat           one line for people, and the lfs setstripe that would make it
  tierctl layout --yaml /mnt/lustre/proj/run7            as lfs setstripe --yaml takes it
  getfattr -n lustre.lov -e hex FILE | tierctl layout --lov /dev/stdin
  tierctl simulate noisy-neighbour                       what would tierd do to this workload?
  tierctl simulate my.toml --policy tierd.toml --json    a scenario and a policy of one's own
  tierctl evaluate --seeds 1-100                         how often is it right, over random workloads?
"""

COMMANDS = (daemon, layout, simulate, evaluate)


def parser() -> argparse.ArgumentParser:
    """Command line."""
    main_parser = argparse.ArgumentParser(
        prog="tierctl", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Talks to the daemon, shows layouts of files on Lustre, and tries policies on simulated clusters.")
    main_parser.add_argument("--version", action="version", version=f"tierctl {__version__}")
    commands = main_parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when it did its work."""
    chosen = parser().parse_args(arguments)
    code: int = chosen.run(chosen)
    return code


if __name__ == "__main__":
    sys.exit(main())
