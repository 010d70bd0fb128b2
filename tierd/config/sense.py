"""Settings of ``[sense]``: exporters, changelogs, clients, and the limits on age and clock skew of all sources.

A validator's error says what to write instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from annotated_types import Ge, Gt
from pydantic import AfterValidator

from tierd.config import sources
from tierd.config.sources import ServerAccess

_READER = re.compile(r"cl\d+(-[A-Za-z0-9_.-]+)?")
_MDT = re.compile(r"MDT[0-9a-f]{4}")


def exporter_url(url: str) -> str:
    """Where an exporter is asked. Raises ValueError.

    >>> exporter_url("http://oss01:9169/metrics?collect[]=jobs")
    'http://oss01:9169/metrics?collect[]=jobs'
    """
    if not asks_http(url):
        raise ValueError("give the whole address: http://oss01:9169/metrics")
    return url


def prometheus_url(settings: sources.PrometheusSettings) -> sources.PrometheusSettings:
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
Prometheus = Annotated[sources.PrometheusSettings, AfterValidator(prometheus_url)]
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
    prometheus: Prometheus = field(default_factory=sources.PrometheusSettings)
    stale_seconds: Annotated[float, Gt(0)] = 90.0
    """Maximum age of counters and records; tierd does not act on older ones."""
    skew_seconds: Annotated[float, Gt(0)] = 30.0
    """Maximum clock difference of a source to this node; tierd does not act on a source beyond it."""
    watch: dict[str, str] = field(default_factory=dict)
    """Single-client mode: directories (from the root of the file system) watched with inotify in place of changelogs,
    and the jobs that work there (``mdt_small.*``; empty: those whose id ends with the owner's number)."""
    robinhood: sources.RobinhoodSettings = field(default_factory=sources.RobinhoodSettings)
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
