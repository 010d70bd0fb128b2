"""``tierctl whatif``: what tierd would have done in a past time, and how much flash that needs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tierd.cli import client
from tierd.clock import Clock, SystemClock
from tierd.config.load import ConfigurationError, load
from tierd.config.sense import prometheus_url
from tierd.config.settings import Settings
from tierd.sense.http_client import HttpClient, SourceError
from tierd.sense.prometheus import QueryApi
from tierd.sense.prometheus_past import LEAST_STEP_SECONDS, PastWindows, survey
from tierd.text import printable
from tierd.whatif.account import Account, needs
from tierd.whatif.report import Answer, as_json, as_svg, as_text

QUERY_SECONDS = 60.0
"""Limit of the time for one query: a choice. Prometheus itself ends queries after two minutes."""
_UNITS = {"M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    whatif = commands.add_parser(
        "whatif", help="show what tierd would have done, and how much flash that needs",
        description="Read a past period from Prometheus, and show which streams lost how much to which jobs, what "
                    "tierd would have regained, and how much flash that needs. Queries only Prometheus and changes "
                    "nothing.")
    whatif.add_argument("--prometheus", metavar="URL", default="",
                        help="address of Prometheus (default: that of --config)")
    whatif.add_argument("--config", type=Path, metavar="FILE",
                        help="configuration of tierd: access to Prometheus ([sense.prometheus]), pools and policies")
    whatif.add_argument("--fs", metavar="NAME", default=argparse.SUPPRESS,
                        help="file system (default: the only one in Prometheus)")
    whatif.add_argument("--since", default="7d", metavar="WHEN", type=client.moment_option,
                        help="start: 6h, 7d, or 2026-11-20T08:00 in local time (default: %(default)s)")
    whatif.add_argument("--until", metavar="WHEN", type=client.moment_option, help="end (default: now)")
    whatif.add_argument("--step", type=client.duration_seconds, metavar="TIME",
                        help="length of a window; longer ones are faster to compute and show less (default: the scrape "
                             f"interval, at least {LEAST_STEP_SECONDS:.0f}s)")
    whatif.add_argument("--flash", type=flash_sizes, default=(), metavar="SIZES",
                        help="sizes of flash to compare: 50T,100T,200T")
    whatif.add_argument("--picture", type=Path, metavar="FILE", help="write gain against flash to this SVG file")
    whatif.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print everything as JSON")
    whatif.set_defaults(run=run)


def flash_sizes(text: str) -> tuple[float, ...]:
    """Parse sizes, which are powers of 1000, as flash is sold.

    >>> flash_sizes("50T,1.5P")
    (50000000000000.0, 1500000000000000.0)
    """
    found = []
    for each in text.split(","):
        try:
            size = float(each[:-1]) * _UNITS[each[-1:].upper()]
        except (ValueError, KeyError):
            size = 0.0
        if not 0 < size < float("inf"):
            raise argparse.ArgumentTypeError(f"{each!r} is not a size: 500G, 50T, 1.5P")
        found.append(size)
    return tuple(sorted(found))


def run(chosen: argparse.Namespace) -> int:
    """Read the range and print the answer; after Ctrl-C or an error, that of the part which is complete."""
    clock = SystemClock()
    try:
        settings = load(chosen.config)
        until = client.moment(chosen.until, clock.now()) if chosen.until else clock.now()
        since = client.moment(chosen.since, until)
        if since >= until:
            raise ValueError(f"--since {chosen.since} is not before --until")
        if chosen.picture is not None:
            chosen.picture.touch()  # it may be read-only: half an hour later the answer would be lost
        answer = asked(query_api(settings, chosen.prometheus, chosen.fs or "", clock), settings, since, until,
                       step_seconds=chosen.step, sizes=chosen.flash)
        if chosen.picture is not None:
            chosen.picture.write_text(as_svg(answer), encoding="utf-8")
    except (ConfigurationError, ValueError, SourceError) as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    print(as_json(answer) if chosen.json else "\n".join(map(printable, as_text(answer))))
    if isinstance(answer.stopped, KeyboardInterrupt):
        raise answer.stopped
    if answer.stopped is not None:
        print(printable(str(answer.stopped)), file=sys.stderr)
    return 0 if answer.stopped is None else 1


def query_api(settings: Settings, url: str, fsname: str, clock: Clock) -> QueryApi:
    """The server that is asked. Raises ValueError."""
    prometheus = prometheus_url(replace(settings.sense.prometheus, url=url or settings.sense.prometheus.url))
    if not prometheus.url:
        raise ValueError("name the server: --prometheus http://prometheus:9090, or --config with [sense.prometheus]")
    return QueryApi(prometheus, fsname, clock, HttpClient(prometheus.access, QUERY_SECONDS, os.environ),
                    timeout_seconds=QUERY_SECONDS, skew_seconds=settings.sense.skew_seconds)


def asked(api: QueryApi, settings: Settings, since: float, until: float, step_seconds: float | None = None,
          sizes: Sequence[float] = ()) -> Answer:
    """The answer for a range, or for its beginning if it was interrupted. Raises SourceError if nothing is known."""
    found = survey(api, since, until)
    step = max(step_seconds or LEAST_STEP_SECONDS, found.scrape_seconds)
    past = PastWindows(replace(api, fsname=found.fsname), found, step)
    account, stopped = Account(settings, step, found.begin, found.end), None
    with client.bar("reading", found.end - found.begin) as progress:
        try:
            for window, reading in past:
                account.add(window, reading, past.seen.facts)
                progress(window.end - found.begin)
        except (KeyboardInterrupt, SourceError) as error:
            if not past.seen.windows:
                raise
            stopped = error
    past.seen.check()
    account.close()
    neighbours = sorted(account.neighbours.values(), key=lambda each: -each.gain.bytes)
    reserve = settings.resolved_scopes.whole.small_files_to_flash.reserve
    return Answer(found=found, until=account.until, step_seconds=step, seen=past.seen, known_pools=account.known_pools,
                  all_cases=account.cases, neighbours=neighbours, needed=needs(neighbours, reserve), sizes=sizes,
                  stopped=stopped)
