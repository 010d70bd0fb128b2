"""The command ``tierd``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

from httpserver.config import ConfigError, WebConfigFile
from lustre import __version__
from lustre.journald import complain
from lustre.priority import run_promptly
from lustre.standard_output import standard_output
from tierd import dependencies, extensions
from tierd.logs import log_to_standard_error
from tierd.text import count_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tierd.config.load import Examined, Remark
EXAMPLES = """\
examples:
  tierd replay tests/tapes/noisy-create-1m             show findings and plan for a recording
  tierd replay TAPE --json --config tierd.toml         print findings and plan as JSON, with your own configuration
  tierd --config /etc/tierd/tierd.toml --check-config  check the configuration and exit; with --online, its pools too
  tierd --config /etc/tierd/tierd.toml                 run the daemon (dry run unless act.dry_run = false)
  tierd mover --config /etc/tierd/tierd.toml           run a mover of a cluster
  tierd reader --config /etc/tierd/tierd.toml          run a changelog reader of a cluster
  tierd brake --leader https://tierd:9170              run the agent of an OSS, which slows jobs (act.brake)
"""

ROOMS = (
    "tierd.cluster.command",
    *(f"{package}.command" for package, commands in extensions.COMMANDS.items() if not commands),
)
"""Modules of parts that can be removed, each with its commands; one may have what makes the daemon one of several."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""


def parser() -> argparse.ArgumentParser:
    """The command line of tierd."""
    main_parser = argparse.ArgumentParser(
        prog="tierd", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Finds jobs whose small files slow down other jobs' streams on Lustre, and moves those files to "
                    "flash.")
    main_parser.add_argument("--version", action="version", version=f"tierd {__version__}")
    main_parser.add_argument("--config", type=Path, metavar="FILE",
                             help="configuration file (TOML); without a command, run the daemon")
    main_parser.add_argument("--check-config", action="store_true",
                             help="report all mistakes in the configuration with their lines, and exit")
    main_parser.add_argument("--online", action="store_true",
                             help="with --check-config: also compare with the file system, its pools and MDTs, and ask "
                                  "the servers that the file names")
    commands = main_parser.add_subparsers(dest="command", metavar="COMMAND")
    replaying = commands.add_parser(
        "replay", help="show findings and plan for a recording; changes nothing",
        description="Run detection and planning on a recording, in the time of the recording. Changes nothing.")
    replaying.add_argument("tape", type=Path, metavar="TAPE", help="directory with tape.json and tape.tar.xz")
    replaying.add_argument("--config", type=Path, metavar="FILE", default=argparse.SUPPRESS,
                           help="configuration file (default: built-in defaults, pools flash and hdd)")
    replaying.add_argument("--json", action="store_true", help="print findings and plan as JSON")
    for room in rooms():
        room.add(commands)
    return main_parser


def rooms() -> list[ModuleType]:
    return [import_module(name) for name in ROOMS]


@standard_output("tierd")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0 success, 1 error in the input, 2 error in the command line.

    The status is also 2 if packages of the extra ``tierd`` are not installed. Each error is reported.
    """
    chosen = parser().parse_args(arguments)
    try:
        return run(chosen)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        return dependencies.report_missing("tierd", error)


def run(chosen: argparse.Namespace) -> int:
    """Run the daemon or the command; 1, with an error message, for an error in its input."""
    if alone := getattr(chosen, "alone", None):  # without a configuration
        log_to_standard_error()
        return int(alone(chosen))
    if chosen.command is None and chosen.config and not chosen.check_config:
        run_promptly()  # before the imports, which take a minute on a node without idle time
    from tierd.config.load import ConfigurationError, accepted, examine, load  # noqa: PLC0415 -- needs the extra, as do the others
    from tierd.daemon import process  # noqa: PLC0415
    from tierd.replay import run as replaying  # noqa: PLC0415
    from tierd.sense import tape  # noqa: PLC0415

    try:
        if chosen.check_config:
            return check(chosen.config, online=chosen.online)
        if chosen.online:
            parser().error("--online needs --check-config")
        log_to_standard_error()
        if chosen.command is None:
            if chosen.config is None:
                parser().error("--config FILE or a command is required; see --help")
            examined = examine(chosen.config)
            web_config, wrong = load_web(examined, chosen.config)
            settings = accepted(replace(examined, settings=None if wrong else examined.settings,
                                        remarks=sorted((*examined.remarks, *wrong))))
            make_candidate = next((room.candidate for room in rooms() if hasattr(room, "candidate")), None)
            return process.serve(chosen.config, settings, web_config, make_candidate)
        settings = load(chosen.config)
        if serve := getattr(chosen, "serve", None):
            if chosen.config is None:
                parser().error(f"{chosen.command} needs --config FILE")
            return int(serve(settings))
        with tape.opened(chosen.tape) as recording:
            found = replaying.replay(recording, settings)
    except (ConfigurationError, tape.TapeError) as error:
        complain(error)
        return 1
    except BrokenPipeError:  # tierd --check-config | head
        raise
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}" if error.filename else error)
        return 1
    print(replaying.as_json(found) if chosen.json else replaying.as_text(found))
    return 0


def load_web(examined: Examined, config: Path | None) -> tuple[WebConfigFile | None, list[Remark]]:
    """The web configuration, or remarks on its mistakes, also where the settings have mistakes of their own."""
    from tierd.daemon import web  # noqa: PLC0415 -- needs the extra

    path = web.config_path(examined.web, config)
    try:
        return WebConfigFile(path) if path else None, []
    except ConfigError as error:
        return None, [examined.remark(("web", "config_file"), each) for each in error.sentences]


def check(config: Path | None, *, online: bool) -> int:
    """Report every mistake and warning in the order of the lines; 1 if there is a mistake. The last line is OK."""
    from tierd.config.files import merge  # noqa: PLC0415
    from tierd.config.load import examine  # noqa: PLC0415 -- needs the extra, as do the others
    from tierd.daemon import online_check  # noqa: PLC0415

    examined = examine(config)
    remarks, settings = list(examined.remarks), examined.settings
    if online and settings is not None and examined.files:
        values = merge(examined.files)
        found = list(online_check.online_contradictions(settings, values, online_check.this_node(settings)))
        remarks += [examined.remark(each.location, each.sentence, fatal=each.fatal) for each in found]
    remarks += load_web(examined, config)[1]
    for remark in sorted(remarks):
        print(remark.text if remark.fatal else f"warning: {remark.text}", file=sys.stderr)
    mistakes = sum(remark.fatal for remark in remarks)
    if mistakes:
        print(f"{config}: {count_of(mistakes, 'mistake')}", file=sys.stderr)
        return 1
    print(f"{config or 'defaults'}: OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
