"""What a setting must be, beyond its type: each says in its error what to write instead."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from tierd.decide import small_files_to_flash
from tierd.sense import prometheus

SOCKET_PATH_BYTES_MAX = 107
_READER = re.compile(r"cl\d+(-[A-Za-z0-9_.-]+)?")
_MDT = re.compile(r"MDT[0-9a-f]{4}")
MIN_KEEP_DAYS = 30
"""Changelog records, waiting moves and verdicts refer to acts that are days old."""


def whole_path(path: str) -> str:
    """A path from the root, as a daemon has no folder of its own. Raises ValueError.

    >>> whole_path("/mnt/lustre")
    '/mnt/lustre'
    """
    if not path.startswith("/") or "\0" in path:
        raise ValueError("give the whole path, from / on")
    return path


def whole_path_or_none(path: str) -> str:
    """The same, or nothing."""
    return path and whole_path(path)


def socket_path(path: str) -> str:
    """The same, and short enough for a socket of Linux (``sockaddr_un``). Raises ValueError.

    >>> socket_path("/run/tierd/tierd.sock")
    '/run/tierd/tierd.sock'
    """
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
        raise ValueError(f"give a path of {SOCKET_PATH_BYTES_MAX} bytes at the most, for it is that of a socket")
    return whole_path(path)


def exporter_url(url: str) -> str:
    """Where an exporter is asked. Raises ValueError.

    >>> exporter_url("http://oss01:9169/metrics?collect[]=jobs")
    'http://oss01:9169/metrics?collect[]=jobs'
    """
    if not asks_http(url):
        raise ValueError("give the whole address: http://oss01:9169/metrics")
    return url


def prometheus_url(settings: prometheus.Settings) -> prometheus.Settings:
    """Where Prometheus is asked, if it is. Raises ValueError."""
    if settings.url and not asks_http(settings.url):
        raise ValueError("url: give the whole address: https://prometheus.example.org")
    return settings


def asks_http(url: str) -> bool:
    """Whether it names a server and how to ask it.

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


def retention_days(days: float) -> float:
    """Days the journal keeps records; 0 for ever. Raises ValueError for a time in which acts still matter to tierd.

    >>> retention_days(0.0), retention_days(365.0)
    (0.0, 365.0)
    """
    if days != 0 and not MIN_KEEP_DAYS <= days < float("inf"):
        raise ValueError(f"give at least {MIN_KEEP_DAYS} days, or 0 to keep records for ever")
    return days


def two_pools(settings: small_files_to_flash.Settings) -> small_files_to_flash.Settings:
    """Flash apart from the disks. Raises ValueError where both are one pool, or one has no name."""
    if not settings.flash_pool or not settings.hdd_pool:
        raise ValueError("flash_pool and hdd_pool need names: nothing is placed where no pool is named")
    if settings.flash_pool == settings.hdd_pool:
        raise ValueError(f"flash_pool and hdd_pool are both {settings.flash_pool!r}: name two")
    return settings
