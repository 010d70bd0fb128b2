"""Settings of ``[sense]``: exporters, Prometheus, integrations, changelogs, clients, limits on age and clock skew.

A validator's error says what to write instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import urlsplit

from annotated_types import Ge
from pydantic import AfterValidator

from tierd.config.act import WholePath, text_like
from tierd.model import Table
from tierd.validators import Bytes, Seconds


@dataclass(frozen=True)
class ServerAccess(Table):
    """Credentials for a server, and trusted certificates."""

    user: str = ""
    """User for basic authentication, with one of the passwords below."""
    password_file: str = ""
    password_env: str = ""
    """Name of an environment variable. A file is better: other processes may read the environment."""
    token_file: str = ""
    """File with a bearer token. It is read for every request, because tokens are renewed."""
    token_env: str = ""
    ca_file: str = ""
    """CA certificates (PEM) for the server's certificate; empty: the system's certificates."""
    cert_file: str = ""
    """Client certificate (PEM), if the server requires one."""
    key_file: str = ""
    max_bytes: Bytes = 64 << 20
    """Maximum length of an answer; a longer one is refused."""


@dataclass(frozen=True)
class PrometheusSettings(Table):
    """Where Prometheus is, and which of its series to read."""

    url: str = ""
    """``http://prometheus:9090``, with its path prefix if it has one. Empty: it is not used."""
    matchers: str = ""
    """More label matchers, for a Prometheus of several clusters: ``cluster="a"``."""
    lookback_seconds: Annotated[Seconds, Ge(10)] = 75.0
    """Range of the samples in a query: two and a half scrape intervals."""
    access: ServerAccess = field(default_factory=lambda: ServerAccess(max_bytes=32 << 20))
    learn_seconds: Annotated[float, Ge(0)] = 86400.0
    """Range of the query for the usual throughput of jobs, once after a start. It uses the recording rules of
    ``alerts/rules/interference.yml``. 0: no query."""


def exporter_url(url: str) -> str:
    """The URL of an exporter. Raises ValueError for an invalid URL.

    >>> exporter_url("http://oss01:9169/metrics?collect[]=jobs")
    'http://oss01:9169/metrics?collect[]=jobs'
    """
    if not asks_http(url):
        raise ValueError("give the whole address: http://oss01:9169/metrics")
    if has_credentials(url):
        raise ValueError("others can see a password in an address: set exporter_access.user and password_file")
    return url


def prometheus_url(settings: PrometheusSettings) -> PrometheusSettings:
    """The settings. Raises ValueError for an invalid URL."""
    if settings.url and not asks_http(settings.url):
        raise ValueError("url: give the whole address: https://prometheus.example.org")
    if has_credentials(settings.url):
        raise ValueError("url: others can see a password in an address: set access.user and access.password_file")
    return settings


def has_credentials(url: str) -> bool:
    """Whether a URL has a user or a password in it.

    >>> has_credentials("http://me:secret@oss01:9169/metrics"), has_credentials("http://oss01:9169/metrics")
    (True, False)
    """
    try:
        return "@" in urlsplit(url).netloc
    except ValueError:  # an invalid address of IPv6
        return "@" in url


def asks_http(url: str) -> bool:
    """Whether it is an http or https URL with a host, and without white space.

    >>> asks_http("https://[::1]:9090"), asks_http("oss01:9169"), asks_http("http://oss01:port")
    (True, False, False)
    """
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and url.split() == [url]
    except ValueError:  # an invalid port or address
        return False


Url = Annotated[str, AfterValidator(exporter_url)]
Prometheus = Annotated[PrometheusSettings, AfterValidator(prometheus_url)]
MdtName = Annotated[str, text_like(r"MDT[0-9a-f]{4}",
                                   "write the metadata target as MDT0000, without the file system's name")]
ReaderName = Annotated[str, text_like(r"cl\d+(-[A-Za-z0-9_.-]+)?",
                                      "write the name that lctl changelog_register printed: cl1")]
WAIT_SHARE = 0.8
"""Part of a cycle in which tierd waits for sources. This is a choice: detection takes the rest."""


@dataclass(frozen=True)
class SenseSettings(Table):
    """The sources of tierd."""

    exporters: tuple[Url, ...] = ()
    """URLs of lustre-exporter on every OSS and MDS. Without these, the next setting and Prometheus, tierd reads the
    parameter files of this node, which must be the server."""
    exporter_files: tuple[str, ...] = ()
    """Files that name exporters as Prometheus' ``file_sd_configs`` do, JSON or YAML: ``/etc/tierd/targets/*.json``."""
    exporter_access: ServerAccess = field(default_factory=ServerAccess)
    prometheus: Prometheus = field(default_factory=PrometheusSettings)
    stale_seconds: Seconds = 90.0
    """Maximum age of counters and records; tierd does not act on older ones."""
    skew_seconds: Seconds = 30.0
    """Maximum clock difference of a source to this node; tierd does not act on a source beyond it."""
    watch: dict[WholePath, str] = field(default_factory=dict)
    """Single-client mode: directories (from the root of the file system) watched with inotify in place of changelogs,
    and the jobs that work there (``mdt_small.*``; empty: those whose id ends with the owner's number)."""
    mdts: tuple[MdtName, ...] = ()
    """MDTs whose changelogs are read, as ``MDT0000``. Empty: all this client knows."""
    readers: dict[MdtName, ReaderName] = field(default_factory=dict)
    """Reader registered on each MDT (``cl1``), for which tierd clears processed records. Without one it clears none."""
    clients: tuple[Url, ...] = ()
    """URLs of lustre-exporter on clients; a sample of each kind of node is enough. This node is always read."""
    cycle_seconds: Seconds = 5.0
    timeout_seconds: Seconds = 15.0
    """Limit of the time of an exporter's answer. What comes after ``wait_seconds`` counts in the next cycle."""

    @property
    def wait_seconds(self) -> float:
        """Time that a cycle waits for answers: most of the cycle, so that it ends before the next one begins."""
        return min(self.timeout_seconds, WAIT_SHARE * self.cycle_seconds)
