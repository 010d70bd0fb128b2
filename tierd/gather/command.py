"""``tierd gather``: its options and its process."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from httpserver.config import ConfigError, WebConfigFile
from httpserver.server import Address, parse_address
from httpserver.serving import default_connections, serve
from tierd.clock import SystemClock
from tierd.config.load import ConfigurationError
from tierd.gather.app import App
from tierd.gather.scrape import Gather
from tierd.gather.settings import Settings, load
from tierd.sense.discovery import FileTargets
from tierd.sense.exposition import ACCEPT_TEXT, TEXT_TYPES
from tierd.sense.http_client import HttpClient, tls_context

log = logging.getLogger("tierd")


def settings_of(given: argparse.Namespace) -> Settings:
    """The settings of the file with the options over them. Raises ConfigurationError or OSError."""
    settings = load(given.config) if given.config else Settings()
    if given.targets:
        settings = replace(settings, target_files=(*settings.target_files, *given.targets))
    if given.listen:
        settings = replace(settings, web=replace(settings.web, listen=tuple(given.listen)))
    if given.web_config:
        settings = replace(settings, web=replace(settings.web, config_file=str(given.web_config)))
    if not (settings.targets or settings.target_files):
        raise ConfigurationError("no nodes: name a file with --targets, or set targets or target_files in the"
                                 " configuration")
    return settings


def fetch_over_http(settings: Settings) -> Callable[[str], bytes]:
    """Returns the exposition of a node, with the credentials of the settings."""
    client = HttpClient(settings.access, settings.deadline_seconds, os.environ)
    return lambda url: client.get(url, TEXT_TYPES, ACCEPT_TEXT).body


def run(given: argparse.Namespace) -> int:
    """Serve until SIGTERM. Returns 1, after a message for each mistake, for invalid settings."""
    try:
        settings = settings_of(given)
        addresses = [parsed(text) for text in settings.web.listen]
        path = settings.web.config_file
        if path and given.config and not given.web_config:
            path = str(given.config.parent / path)
        web_config = WebConfigFile(Path(path)) if path else None
        if settings.access.ca_file or settings.access.cert_file:
            tls_context(settings.access)  # a mistake in the files ends the start, not each scrape
    except ConfigError as mistakes:
        return refused([f"web configuration: {sentence}" for sentence in mistakes.sentences])
    except ConfigurationError as mistakes:
        return refused([str(mistakes)])
    except OSError as error:
        return refused([f"{error.filename}: {error.strerror}" if error.filename else str(error)])
    if given.check:
        for sentence in target_file_problems(settings):
            sys.stderr.write(f"warning: {sentence}\n")
        print_line(f"{given.config or 'options'}: OK")
        return 0
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    connections = default_connections()
    clock = SystemClock().monotonic
    gather = Gather(settings, fetch_over_http(settings), clock, log.info)
    log.info("gathering %d nodes", len(gather.targets()))
    app = App(gather, settings.deadline_seconds, clock, web_config, connections)
    return serve(addresses, app, name="tierd gather", web_config=web_config, connections=connections)


def target_file_problems(settings: Settings) -> tuple[str, ...]:
    """What is wrong with the files of nodes now. A gather starts anyway, and reads them when they change."""
    files = FileTargets(settings.target_files)
    files.targets()
    return files.problems


def parsed(text: str) -> Address:
    """An address to listen on. Raises ConfigurationError."""
    try:
        return parse_address(text)
    except ValueError as error:
        raise ConfigurationError(f"web.listen: {error}") from error


def refused(sentences: Sequence[str]) -> int:
    """Report mistakes on standard error."""
    for sentence in sentences:
        sys.stderr.write(f"{sentence}\n")
    return 1


def print_line(text: str) -> None:
    """Print a line on standard output."""
    sys.stdout.write(f"{text}\n")
