"""``lustre-exporter``: arguments, wiring, serving."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from exporter import clock, exposition
from exporter.collectors import COLLECTORS
from exporter.config import Address, MistakesError, Settings, check_roots, parse_address
from exporter.own import registry
from exporter.scrape import Scraper
from exporter.server import App, Server, listen
from lustre import __version__
from lustre.tree import Roots, Tree

PATIENCE_SECONDS = 30.0
"""How long a scrape under way may go on after SIGTERM."""

EXAMPLES = """\
examples:
  lustre-exporter                                      serve this node on port 9169
  lustre-exporter --once | less                        look once
  lustre-exporter --output /var/lib/node_exporter/lustre.prom     write a file for the textfile collector
  lustre-exporter --once --path.procfs=tree/proc --path.sysfs=tree/sys      show a recorded tree
  lustre-exporter --web.listen-address=[::1]:9169 --no-collector.jobs       local only, without jobs
  lustre-exporter --collector.osc.per-target           every object target of every mount
  curl 'localhost:9169/metrics?collect[]=osc&collect[]=llite'     only some collectors
"""


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="lustre-exporter",
        description="Prometheus metrics of a Lustre client or server, read from the kernel's parameter files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"lustre-exporter {__version__}")
    what = parser.add_argument_group("what to do")
    what.add_argument("--once", action="store_true", help="print the metrics once, in the text format, and end")
    what.add_argument("--output", metavar="FILE", type=Path, help="write them once to FILE, whole or not at all")
    where = parser.add_argument_group("where to read")
    where.add_argument("--path.procfs", dest="procfs", metavar="DIR", default="/proc", help="default: %(default)s")
    where.add_argument("--path.sysfs", dest="sysfs", metavar="DIR", default="/sys", help="default: %(default)s")
    where.add_argument("--path.debugfs", dest="debugfs", metavar="DIR", help="default: kernel/debug below sysfs")
    web = parser.add_argument_group("where to serve")
    web.add_argument("--web.listen-address", dest="listen", metavar="ADDRESS", default=":9169",
                     help="host:port, :port (every address) or [::1]:port; default: %(default)s")  # fmt: skip
    web.add_argument("--web.telemetry-path", dest="telemetry_path", metavar="PATH", default="/metrics",
                     help="default: %(default)s")  # fmt: skip
    _add_collectors(parser)
    return parser


def _add_collectors(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("collectors", "each can be switched off with --no-collector.NAME")
    for collector in COLLECTORS:
        group.add_argument(f"--collector.{collector.name}", dest=f"collector_{collector.name}", action="store_true",
                           default=collector.default, help=collector.help)  # fmt: skip
        group.add_argument(f"--no-collector.{collector.name}", dest=f"collector_{collector.name}", action="store_false",
                           help=argparse.SUPPRESS)  # fmt: skip
    group.add_argument("--collector.osc.per-target", dest="osc_per_target", action="store_true",
                       help="a series per object target instead of sums by pool: about 85 series a target")  # fmt: skip
    group.add_argument("--jobs.limit", dest="jobs_limit", metavar="N", type=int, default=0,
                       help='only the N busiest jobs of a target by themselves, the others summed as job="other";'
                       " default: 0, all")  # fmt: skip
    group.add_argument("--collector.deadline", dest="deadline", metavar="SECONDS", type=float, default=10.0,
                       help="leave a collector out of a scrape when it takes longer; default: %(default)s")  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the exporter; the process's exit status."""
    logging.basicConfig(format="lustre-exporter: %(message)s", level=logging.INFO)
    parser = arguments()
    given = parser.parse_args(argv)
    try:
        roots, settings, address = checked(given)
    except MistakesError as mistakes:
        parser.error("\n  ".join(["", *mistakes.sentences] if len(mistakes.sentences) > 1 else mistakes.sentences))
    scraper = Scraper(Tree(roots), COLLECTORS, settings, clock.monotonic)
    if given.once or given.output:
        return once(scraper, given.output)
    return serve(scraper, address, given.telemetry_path)


def checked(given: argparse.Namespace) -> tuple[Roots, Settings, Address]:
    """What the arguments mean. All that is wrong with them is said at once."""
    wrong: list[str] = []
    address, roots = Address("", 0), Roots.of("/", "/")
    try:
        address = parse_address(given.listen)
    except ValueError as error:
        wrong.append(f"--web.listen-address: {error}")
    if not given.telemetry_path.startswith("/") or given.telemetry_path in {"/", "/-/healthy"}:
        wrong.append(f"--web.telemetry-path: {given.telemetry_path!r} must begin with /, and not be / or /-/healthy")
    if given.jobs_limit < 0:
        wrong.append("--jobs.limit: must not be negative")
    if not 0 < given.deadline < threading.TIMEOUT_MAX:
        wrong.append("--collector.deadline: must be a number of seconds above 0")
    try:
        roots = check_roots(given.procfs, given.sysfs, given.debugfs)
    except MistakesError as mistakes:
        wrong += mistakes.sentences
    if wrong:
        raise MistakesError(wrong)
    enabled = frozenset(c.name for c in COLLECTORS if getattr(given, f"collector_{c.name}"))
    return roots, Settings(enabled, given.osc_per_target, given.jobs_limit, given.deadline), address


def once(scraper: Scraper, output: Path | None) -> int:
    """One pass, to a file or to standard output."""
    pieces = exposition.text(scraper.run(), registry(scraper), openmetrics=False)
    try:
        if output is not None:
            write_whole(output, b"".join(pieces))
            return 0
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"lustre-exporter: cannot write {output or 'to standard output'}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in place at one stroke, readable for all, so that no reader sees half of it."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def serve(scraper: Scraper, address: Address, telemetry_path: str) -> int:
    """Serve until told to stop; a scrape under way is finished."""
    try:
        server = listen(address, App(scraper, registry(scraper), telemetry_path))
    except OSError as error:
        print(f"lustre-exporter: cannot listen on {address}: {error.strerror or error}", file=sys.stderr)
        return 1
    with server:
        _stop_on_signals(server)
        logging.getLogger("lustre-exporter").info("listening on %s", address)
        server.serve_forever()
        if not server.finish(PATIENCE_SECONDS):
            logging.getLogger("lustre-exporter").warning("a scrape did not end within %g s", PATIENCE_SECONDS)
    return 0


def _stop_on_signals(server: Server) -> None:
    def stop(_signal: int, _frame: object) -> None:
        threading.Thread(target=server.shutdown, daemon=True).start()  # would wait for itself in this thread

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


if __name__ == "__main__":
    sys.exit(main())
