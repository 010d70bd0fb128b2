"""``lustre-exporter``: the command line. It serves the metrics, prints them once, or writes them to a file."""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from exporter import clock, exposition
from exporter.app import HEALTH_PATH, App
from exporter.collector import Settings
from exporter.collectors import COLLECTORS
from exporter.collectors.slim import SLIM_COLLECTORS
from exporter.jobs.lines import OWN_NAME, return_memory
from exporter.logs import FORMATS, LEVELS, configure_logging
from exporter.scrape import Scraper
from exporter.self_metrics import registry
from exporter.textfile import write_metrics
from httpserver.bodies import HeldBodies
from httpserver.config import ConfigError, WebConfigFile
from httpserver.connections import Connections
from httpserver.server import Address, parse_address, serve
from lustre import __version__
from lustre.journald import complain
from lustre.parameters import Roots, Tree
from lustre.priority import run_promptly
from lustre.standard_output import standard_output


def check_roots(procfs: str, sysfs: str, debugfs: str | None) -> Roots:
    """Return the three root directories. Given directories must exist; the default debugfs may be missing."""
    given = [("--path.procfs", procfs), ("--path.sysfs", sysfs)]
    if debugfs is not None:
        given.append(("--path.debugfs", debugfs))
    wrong = [f"{flag}: {path} is not a directory" for flag, path in given if not Path(path).is_dir()]
    if wrong:
        raise ConfigError(wrong)
    return Roots.of(procfs, sysfs, debugfs)


log = logging.getLogger("lustre-exporter")
DEFAULT_ADDRESS = ":9169"
EXAMPLES = """\
examples:
  lustre-exporter                                      serve the metrics of this node on port 9169
  lustre-exporter --once | less                        print the metrics once
  lustre-exporter --output /var/lib/node_exporter/lustre.prom     write a file for node_exporter's textfile collector
  lustre-exporter --once --path.procfs=tree/proc --path.sysfs=tree/sys      read a recorded tree
  lustre-exporter --web.listen-address=[::1]:9169 --no-collector.jobs       listen on loopback only, without job metrics
  lustre-exporter --collector.osc.per-target           one series per object target
  curl 'localhost:9169/metrics?collect[]=osc&collect[]=llite'     scrape some collectors only
"""


class Parser(argparse.ArgumentParser):
    """Reports a usage error in one line, without the list of options."""

    def error(self, message: str) -> NoReturn:
        complain(f"{self.prog}: {message}\nTry '{self.prog} --help'.")
        self.exit(2)


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="lustre-exporter",
        usage="%(prog)s [OPTION]...",
        description="Prometheus exporter for Lustre clients and servers. It reads the parameter files of the kernel.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"lustre-exporter {__version__}")
    what = parser.add_argument_group("output")
    what.add_argument("--once", action="store_true", help="print the metrics once and exit")
    what.add_argument("--profile", choices=("full", "slim"), default="full",
                      help="slim: at most 100 series of a client instead of thousands, for sites with many clients;"
                      " it replaces the collectors and their options; default: %(default)s")  # fmt: skip
    what.add_argument("--output", metavar="FILE", type=Path, help="replace FILE atomically by the metrics and exit")
    where = parser.add_argument_group("directories to read")
    where.add_argument("--path.procfs", dest="procfs", metavar="DIR", default="/proc", help="default: %(default)s")
    where.add_argument("--path.sysfs", dest="sysfs", metavar="DIR", default="/sys", help="default: %(default)s")
    where.add_argument("--path.debugfs", dest="debugfs", metavar="DIR", help="default: kernel/debug in sysfs")
    web = parser.add_argument_group("web server")
    web.add_argument("--web.listen-address", dest="listen", metavar="ADDRESS", action="append",
                     help="host:port, :port (all addresses) or [::1]:port; repeat the option for several addresses;"
                     f" default: {DEFAULT_ADDRESS}")  # fmt: skip
    web.add_argument("--web.telemetry-path", dest="telemetry_path", metavar="PATH", default="/metrics",
                     help="path of the metrics; default: %(default)s")  # fmt: skip
    web.add_argument("--web.config.file", dest="web_config", metavar="FILE", type=Path,
                     help="file with TLS, client certificates and users, in the format of Prometheus'"
                     " exporter-toolkit; reloaded when it changes")  # fmt: skip
    _add_collectors(parser)
    logs = parser.add_argument_group("logging to standard error")
    logs.add_argument("--log.level", dest="log_level", metavar="LEVEL", choices=LEVELS, default="info",
                      help=f"lowest level to log: {', '.join(LEVELS)}; default: %(default)s")  # fmt: skip
    logs.add_argument("--log.format", dest="log_format", metavar="FORMAT", choices=FORMATS, default="text",
                      help=f"log format: {', '.join(FORMATS)}; default: %(default)s")  # fmt: skip
    return parser


def _add_collectors(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "collectors", "enabled unless marked as off by default; disable one with --no-collector.NAME")
    for collector in COLLECTORS:
        group.add_argument(f"--collector.{collector.name}", dest=f"collector_{collector.name}", action="store_true",
                           default=collector.default,
                           help=collector.help if collector.default else f"{collector.help}; off by default")
        group.add_argument(f"--no-collector.{collector.name}", dest=f"collector_{collector.name}", action="store_false",
                           help=argparse.SUPPRESS)  # fmt: skip
    group.add_argument("--collector.osc.per-target", dest="osc_per_target", action="store_true",
                       help="show object targets instead of sums by pool: 140 to 190 series per target")  # fmt: skip
    group.add_argument("--collector.osp.per-target", dest="osp_per_target", action="store_true",
                       help="on metadata servers, show each target instead of sums by pool: about 29 series per"
                       " target and metadata target")  # fmt: skip
    group.add_argument("--jobs.limit", dest="jobs_limit", metavar="N", type=int, default=0,
                       help='show only the N busiest jobs per target and sum the others as jobid="other"; 0 shows all;'
                       " default: %(default)s")  # fmt: skip
    group.add_argument("--jobs.idle-seconds", dest="jobs_idle", metavar="SECONDS", type=int, default=3600,
                       help="hide jobs that have been idle for longer; 0 shows every job in Lustre's job statistics;"
                       " default: %(default)s")  # fmt: skip
    group.add_argument("--quota.limit", dest="quota_limit", metavar="N", type=int, default=1000,
                       help="show only the N users, groups or projects with the highest usage per quota parameter;"
                       " 0 shows all; default: %(default)s")  # fmt: skip
    group.add_argument("--collector.deadline", dest="deadline", metavar="SECONDS", type=float, default=8.0,
                       help="time limit of a scrape; slower collectors are missing from it, and run again once they"
                       " have finished; keep it below Prometheus' scrape_timeout; default: %(default)s")  # fmt: skip


GC_ALLOCATIONS = 20_000
"""Number of new objects after which Python searches for reference cycles. A scrape makes many objects but no cycles.
With Python's default, the searches take a twentieth of a scrape."""


@standard_output("lustre-exporter")
def main(argv: Sequence[str] | None = None) -> int:
    parser = build_parser()
    given = parser.parse_args(argv)
    configure_logging(given.log_level, given.log_format)
    try:
        wanted = check_arguments(given)
    except ConfigError as mistakes:
        parser.error("\n  ".join(["", *mistakes.sentences] if len(mistakes.sentences) > 1 else mistakes.sentences))
    slim = given.profile == "slim"
    scraper = Scraper(Tree(wanted.roots), SLIM_COLLECTORS if slim else COLLECTORS, wanted.settings, clock.monotonic)
    if given.once or given.output:
        own = registry(scraper, wanted.web_config, slim=slim, in_file=given.output is not None)
        return write_metrics(exposition.render(scraper.run(), own, openmetrics=False), given.output)
    if not scraper.tree.loaded():
        log.warning("Lustre is not loaded on this node; there are no Lustre metrics until it is")
    run_promptly()
    gc.set_threshold(GC_ALLOCATIONS)
    connections, bodies = Connections(), HeldBodies(on_released=return_memory)
    own = registry(scraper, wanted.web_config, connections, bodies, slim=slim)
    app = App(scraper, own, given.telemetry_path, bodies=bodies)
    return serve(wanted.addresses, app, name="lustre-exporter", web_config=wanted.web_config, connections=connections)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The validated arguments."""

    roots: Roots
    settings: Settings
    addresses: tuple[Address, ...]
    web_config: WebConfigFile | None


def check_arguments(given: argparse.Namespace) -> Arguments:
    wrong: list[str] = []
    addresses: list[Address] = []
    roots, web_config = Roots.of("/", "/"), None
    for text in given.listen or [DEFAULT_ADDRESS]:
        try:
            addresses.append(parse_address(text))
        except ValueError as error:
            wrong.append(f"--web.listen-address: {error}")
    if not given.telemetry_path.startswith("/") or given.telemetry_path in {"/", HEALTH_PATH}:
        wrong.append(
            f"--web.telemetry-path: {given.telemetry_path!r} must begin with / and must not be / or {HEALTH_PATH}"
        )
    counts = {"quota.limit": given.quota_limit, "jobs.limit": given.jobs_limit, "jobs.idle-seconds": given.jobs_idle}
    wrong += [f"--{option}: must not be negative" for option, number in counts.items() if number < 0]
    if not 0 < given.deadline < threading.TIMEOUT_MAX:
        wrong.append(f"--collector.deadline: must be above 0 and below {threading.TIMEOUT_MAX:.0f} seconds")
    try:
        roots = check_roots(given.procfs, given.sysfs, given.debugfs)
    except ConfigError as mistakes:
        wrong += mistakes.sentences
    try:
        web_config = WebConfigFile(given.web_config) if given.web_config else None
    except ConfigError as mistakes:
        wrong += [f"--web.config.file: {sentence}" for sentence in mistakes.sentences]
    if wrong:
        raise ConfigError(wrong)
    enabled = frozenset(c.name for c in COLLECTORS if getattr(given, f"collector_{c.name}"))
    if given.profile == "slim":
        enabled = frozenset(collector.name for collector in SLIM_COLLECTORS)
    settings = Settings(enabled, given.osc_per_target, given.jobs_limit, given.jobs_idle, given.deadline,
                        quota_limit=given.quota_limit, osp_per_target=given.osp_per_target)  # fmt: skip
    return Arguments(roots, settings, tuple(addresses), web_config)


if __name__ == "__main__":
    with contextlib.suppress(OSError):  # without procfs, the exporter's job keeps the name of the interpreter
        Path("/proc/self/comm").write_bytes(OWN_NAME)
    sys.exit(main())
