"""The command ``tierctl``: what an administrator asks of tierd, of layouts and of the simulator."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Sequence

from lustre import __version__
from tierd import dependencies

INTERRUPTED = 130
"""By Ctrl-C, as shells count it."""
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""How a file fails into which somebody sent the output."""
EXAMPLES = """\
at work:
  tierctl status                                         what the daemon sees and does
  tierctl top                                            the same, live: targets, jobs, who slows whom, moves
  tierctl explain F3                                     a finding: its numbers, what was done, did it help
  tierctl plan                                           what would be done now
  tierctl advise                                         what to change by hand, where, and what to expect
  tierctl report --since 7d -o week.html                 a page with plots
hold it back:
  tierctl pause "maintenance until noon"                 change nothing until tierctl resume
  tierctl drain                                          begin nothing new, finish what is queued
  tierctl history; tierctl undo 17                       what was done; take one act back
by hand:
  tierctl promote /mnt/lustre/proj/run7 --preview        what would go to flash; without --preview, it goes
  tierctl submit --reason {rule} {fullpath}              the command for robinhood's cmd()
  tierctl layout /mnt/lustre/proj/run7/out.dat           one line for people, and the lfs setstripe that would make it
  getfattr -n lustre.lov -e hex FILE | tierctl layout --lov /dev/stdin
try before:
  tierctl simulate noisy-neighbour                       what would tierd do to this workload?
  tierctl simulate my.toml --policy tierd.toml --json    a scenario and a policy of one's own
  tierctl evaluate --seeds 1-100                         how often is it right, over random workloads?
"""


def parser(command: str = "") -> argparse.ArgumentParser:
    """Command line; with a command, that of this command alone."""
    from tierd import cli  # noqa: PLC0415 -- `tierctl submit` runs once for every file, and needs none of the others

    main_parser = argparse.ArgumentParser(
        prog="tierctl", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Talks to the daemon, shows layouts of files on Lustre, and tries policies on simulated clusters.")
    main_parser.add_argument("--version", action="version", version=f"tierctl {__version__}")
    subparsers = main_parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in cli.modules_for(command):
        module.add(subparsers)
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when it did its work, 2 when packages of the extra ``tierd`` are not installed."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = run_submit(given[1:]) if given[:1] == ["submit"] else run_command(given)
        sys.stdout.flush()
    except BrokenPipeError:  # tierctl … | head
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except ModuleNotFoundError as error:
        return dependencies.report_missing("tierctl", error)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        sys.stderr.write(f"standard output: {error.strerror}\n")
        return 1
    return code


def run_command(given: Sequence[str]) -> int:
    """Any command."""
    found = parser(given[0] if given else "").parse_args(given)
    code: int = found.run(found)
    return code


def run_submit(given: Sequence[str]) -> int:
    """``tierctl submit``, without what the others need."""
    from tierd.cli import submit  # noqa: PLC0415 -- see above

    quick = argparse.ArgumentParser(prog="tierctl submit", description=submit.DESCRIPTION)
    submit.add_options(quick)
    return submit.run(quick.parse_args(given))


if __name__ == "__main__":
    sys.exit(main())
