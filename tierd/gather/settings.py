"""Settings of ``tierd gather``: a TOML file, and options of the command line that go before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, TypeAdapter, ValidationError

from tierd.config import files
from tierd.config.load import PLAIN, ConfigurationError, dotted, in_plain_english, remark_on
from tierd.config.sense import ServerAccess
from tierd.sense.discovery import url_of

DEFAULT_ADDRESS = ":9172"
NODE_MAX_BYTES = 16 << 20


def _checked_target(target: str) -> str:
    url_of(target)
    return target


@dataclass(frozen=True)
class WebSettings:
    """Where the rack's exposition is served."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    listen: tuple[str, ...] = (DEFAULT_ADDRESS,)
    """``host:port``, ``:port`` for all addresses, or ``[::1]:port``."""
    config_file: str = ""
    """TLS and passwords, in the format of Prometheus' exporter-toolkit."""


@dataclass(frozen=True)
class Settings:
    """Which exporters are scraped, and the limits of the sums."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    targets: tuple[Annotated[str, AfterValidator(_checked_target)], ...] = ()
    """Exporters as ``host:port``."""
    target_files: tuple[str, ...] = ()
    """Files in the format of Prometheus' ``file_sd_configs``, JSON or YAML; the last part may be a pattern."""
    node_kind: str = ""
    """Kind of the nodes whose group has no label ``node_kind``."""
    deadline_seconds: Annotated[float, Gt(0), Le(3600)] = 8.0
    """Time for all nodes of a scrape. A node that needs longer is left out. Less than Prometheus' scrape_timeout."""
    min_interval_seconds: Annotated[float, Ge(0), Le(3600)] = 2.0
    """A request within this time of the last scrape gets the result of that scrape."""
    threads: Annotated[int, Gt(0), Le(1024)] = 128
    """Nodes that are asked at the same time. With at least as many as nodes, a node that hangs delays no other."""
    max_series: Annotated[int, Gt(0)] = 200_000
    """Counter series of the rack. Series beyond the limit are left out and counted."""
    max_jobs: Annotated[int, Ge(0)] = 100
    """Jobs with series of their own. Others are summed under ``jobid="other"``."""
    job_idle_seconds: Annotated[float, Gt(0)] = 600.0
    """A job without a node and without growth for so long loses its series."""
    forget_seconds: Annotated[float, Gt(0)] = 86400.0
    """A node that is no longer in the list is forgotten after this time without an answer, as is a series that no
    node has any more."""
    access: ServerAccess = field(default_factory=lambda: ServerAccess(max_bytes=NODE_MAX_BYTES))
    """Credentials for the exporters. Without ``ca_file``, ``https`` uses the system's certificates."""
    web: WebSettings = field(default_factory=WebSettings)


def load(path: Path) -> Settings:
    """Read a file and its drop-ins. Raises ConfigurationError with all mistakes, or OSError."""
    try:
        found = files.read_files(path)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return parse(found)


def parse(found: Sequence[files.TomlFile]) -> Settings:
    r"""Settings from parsed files. Raises ConfigurationError.

    >>> parse([files.parse_file(b"targets = ['n1:9169']\n", "rack.toml")]).targets
    ('n1:9169',)
    >>> parse([files.parse_file(b"max_jobs = 5\nmaxjobs = 6\n", "rack.toml")])
    Traceback (most recent call last):
    ...
    tierd.config.load.ConfigurationError: rack.toml:2: maxjobs: unknown setting; known here: access, deadline_seconds, forget_seconds, job_idle_seconds, max_jobs, max_series, min_interval_seconds, node_kind, target_files, targets, threads, web
    """  # noqa: E501
    try:
        return TypeAdapter(Settings).validate_python(files.merge(found))
    except ValidationError as error:
        remarks = sorted(remark_on(found, problem["loc"], _described(problem["type"], problem["loc"], problem["msg"]),
                                   fatal=True) for problem in error.errors(include_url=False))
        raise ConfigurationError("\n".join(remark.text for remark in remarks)) from error


def _described(kind: str, location: Sequence[int | str], message: str) -> str:
    where = dotted(location)
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        table: object = Settings()
        for part in location[:-1]:
            table = getattr(table, str(part), table)
        return f"{where}: unknown setting; known here: {', '.join(sorted(f.name for f in fields(table)))}"  # type: ignore[arg-type]
    return f"{where}: {PLAIN.get(kind) or in_plain_english(message)}"
