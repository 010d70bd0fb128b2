"""Settings of ``[sense]``: exporters, Prometheus, robinhood, changelogs, clients, limits on age and clock skew.

A validator's error says what to write instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Lt
from pydantic import AfterValidator

_READER = re.compile(r"cl\d+(-[A-Za-z0-9_.-]+)?")
_MDT = re.compile(r"MDT[0-9a-f]{4}")


@dataclass(frozen=True)
class ServerAccess:
    """Credentials for a server, and the certificates that are trusted."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    user: str = ""
    """For basic authentication, with one of the passwords below."""
    password_file: str = ""
    password_env: str = ""
    """Name of an environment variable; a file is better, since the environment of a process can be seen."""
    token_file: str = ""
    """Holds a bearer token. Read anew for every request, as tokens are renewed."""
    token_env: str = ""
    ca_file: str = ""
    """Certificates (PEM) that sign the server's; empty: those of the system."""
    cert_file: str = ""
    """Our own, where the server asks for one."""
    key_file: str = ""
    max_bytes: Annotated[int, Gt(0)] = 64 << 20
    """Maximum length of an answer; a longer one is refused."""


@dataclass(frozen=True)
class PrometheusSettings:
    """Where Prometheus is, and which of its series to read."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    url: str = ""
    """``http://prometheus:9090``, with its path prefix if it has one. Empty: it is not used."""
    matchers: str = ""
    """More label matchers, for a Prometheus of several clusters: ``cluster="a"``."""
    lookback_seconds: Annotated[float, Ge(10)] = 75.0
    """How far back samples are asked for: two scrapes and a half."""
    batch_targets: Annotated[int, Gt(0)] = 16
    """Targets in one query. Fewer make smaller answers and more of them."""
    access: ServerAccess = field(default_factory=lambda: ServerAccess(max_bytes=32 << 20))
    learn_seconds: Annotated[float, Ge(0)] = 86400.0
    """How far back it is asked, once after a start, what jobs usually get: through the recording rules of
    ``alerts/rules/interference.yml``. 0: not at all."""
    learn_timeout_seconds: Annotated[float, Gt(0)] = 20.0
    """Time limit of that query in all; an incomplete answer is not used."""


@dataclass(frozen=True)
class RobinhoodSettings:
    """Where the database is. Grant ``SELECT`` on it to an account of its own, and nothing else."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    database: str = ""
    """``robinhood_lustre``. Empty: it is not used."""
    host: str = "localhost"
    port: Annotated[int, Gt(0), Lt(65536)] = 3306
    socket: str = ""
    """Of a server on this node, in place of host and port."""
    user: str = "tierd"
    password_file: str = ""
    password_env: str = ""
    ca_file: str = ""
    """Certificates (PEM) that sign the server's; empty: no TLS."""
    max_files: Annotated[int, Gt(0)] = 5000
    """Maximum number of files of one directory."""
    statement_seconds: Annotated[float, Gt(0)] = 5.0
    """The server breaks off a statement that takes longer."""
    stale_seconds: Annotated[float, Ge(0)] = 2 * 86400.0
    """Maximum age of the rows, by the last scan or changelog record that the database names."""


def exporter_url(url: str) -> str:
    """Where an exporter is asked. Raises ValueError.

    >>> exporter_url("http://oss01:9169/metrics?collect[]=jobs")
    'http://oss01:9169/metrics?collect[]=jobs'
    """
    if not asks_http(url):
        raise ValueError("give the whole address: http://oss01:9169/metrics")
    return url


def prometheus_url(settings: PrometheusSettings) -> PrometheusSettings:
    """Where Prometheus is asked, if it is. Raises ValueError."""
    if settings.url and not asks_http(settings.url):
        raise ValueError("url: give the whole address: https://prometheus.example.org")
    return settings


def asks_http(url: str) -> bool:
    """Whether it is an http or https URL with a host.

    >>> asks_http("https://[::1]:9090"), asks_http("oss01:9169"), asks_http("http://oss01:port")
    (True, False, False)
    """
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port, or an address, that is none
        return False


def mdt_name(name: str) -> str:
    """A metadata target, without the name of the file system. Raises ValueError.

    >>> mdt_name("MDT000a")
    'MDT000a'
    """
    if not _MDT.fullmatch(name):
        raise ValueError("name the metadata target as MDT0000, without the file system's name")
    return name


def reader_name(name: str) -> str:
    """A reader of a changelog, as ``lctl changelog_register`` names it. Raises ValueError.

    >>> reader_name("cl1"), reader_name("cl2-tierd")
    ('cl1', 'cl2-tierd')
    """
    if not _READER.fullmatch(name):
        raise ValueError("name the reader as lctl changelog_register did: cl1")
    return name


Url = Annotated[str, AfterValidator(exporter_url)]
Prometheus = Annotated[PrometheusSettings, AfterValidator(prometheus_url)]
MdtName = Annotated[str, AfterValidator(mdt_name)]


@dataclass(frozen=True)
class SenseSettings:
    """The sources of tierd."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    exporters: tuple[Url, ...] = ()
    """URLs of lustre-exporter on every OSS and MDS. Without any, and without the two below and Prometheus: the
    parameter files of this node, if it is the server."""
    exporter_files: tuple[str, ...] = ()
    """Files that name exporters as Prometheus' ``file_sd_configs`` do, JSON or YAML: ``/etc/tierd/targets/*.json``."""
    exporter_dns: tuple[str, ...] = ()
    """Names of exporters: ``_lustre-exporter._tcp.example.org`` (SRV), ``oss.example.org:9169`` (A and AAAA)."""
    dns_refresh_seconds: Annotated[float, Gt(0)] = 30.0
    exporter_access: ServerAccess = field(default_factory=ServerAccess)
    prometheus: Prometheus = field(default_factory=PrometheusSettings)
    stale_seconds: Annotated[float, Gt(0)] = 90.0
    """Maximum age of counters and records; tierd does not act on older ones."""
    skew_seconds: Annotated[float, Gt(0)] = 30.0
    """Maximum clock difference of a source to this node; tierd does not act on a source beyond it."""
    watch: dict[str, str] = field(default_factory=dict)
    """Single-client mode: directories (from the root of the file system) watched with inotify in place of changelogs,
    and the jobs that work there (``mdt_small.*``; empty: those whose id ends with the owner's number)."""
    robinhood: RobinhoodSettings = field(default_factory=RobinhoodSettings)
    access_logs: str = ""
    """OST access logs of this node: ``/dev/lustre-access-log/*``. Empty: not read."""
    mdts: tuple[MdtName, ...] = ()
    """MDTs whose changelogs are read, as ``MDT0000``. Empty: all this client knows."""
    readers: dict[MdtName, Annotated[str, AfterValidator(reader_name)]] = field(default_factory=dict)
    """MDT to the reader registered there (``cl1``), for which what was dealt with is cleared. Without: nothing is."""
    clients: tuple[Url, ...] = ()
    """URLs of lustre-exporter on clients; a sample of each kind of node is enough. This node is always read."""
    clients_at_once: Annotated[int, Ge(1)] = 5
    """Clients that are read each half minute."""
    cycle_seconds: Annotated[float, Gt(0)] = 5.0
    timeout_seconds: Annotated[float, Gt(0)] = 4.0
