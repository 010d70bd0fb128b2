"""Addresses of exporters: a fixed list, files as in Prometheus' ``file_sd_configs``, and DNS names.

Files are JSON or YAML; the last part of their path may be a pattern. Labels other than ``__scheme__`` and
``__metrics_path__`` are ignored. A file that cannot be read keeps its former targets and is reported: a half-written
file must not make a server vanish.

``_lustre-exporter._tcp.example.org`` is looked up as SRV; ``oss.example.org:9169`` as A and AAAA. A name keeps its
former addresses, and is reported, while the name server does not answer.
"""

from __future__ import annotations

import glob
import json
import logging
import os
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from tierd.clock import Clock

log = logging.getLogger("tierd.sense")


def url_of(target: str, scheme: str = "http", path: str = "/metrics") -> str:
    """URL of an exporter from ``host:port``. Raises ValueError for anything else.

    >>> url_of("oss1:9169")
    'http://oss1:9169/metrics'
    >>> url_of("oss1:9169/../x")
    Traceback (most recent call last):
    ...
    ValueError: not host:port: 'oss1:9169/../x'
    """
    if scheme not in {"http", "https"}:
        raise ValueError(f"scheme {scheme[:40]!r} is neither http nor https")
    try:
        parts = urlsplit(f"//{target}")
        valid = bool(parts.hostname) and parts.netloc == target and "@" not in target and target.isprintable()
        port = parts.port
    except ValueError:
        valid, port = False, None
    if not valid or " " in target:
        raise ValueError(f"not host:port: {target[:80]!r}")
    whole = target if port is not None else f"{target}:{443 if scheme == 'https' else 80}"
    return f"{scheme}://{whole}{path if path.startswith('/') else '/' + path}"


class Discovery:
    """Exporters from a fixed list, from files and from DNS names."""

    def __init__(self, fixed: Sequence[str], places: Sequence[FileTargets | DnsTargets]) -> None:
        self._fixed = fixed
        self._places = places
        self._logged = ""
        self._last: frozenset[str] | None = None

    def __call__(self) -> tuple[str, ...]:
        """The present URLs, each once. Logs changes, and problems of the sources."""
        urls = dict.fromkeys((*self._fixed, *(url for place in self._places for url in place())))
        problem = "; ".join(words for place in self._places for words in place.problems.values())
        if problem != self._logged:
            self._logged = problem
            if problem:
                log.warning("discovery: %s", problem)
            else:
                log.info("discovery: works again")
        found = frozenset(urls)
        if self._last is not None and found != self._last:
            log.info("discovery: %d exporters added, %d removed, %d known", len(found - self._last),
                     len(self._last - found), len(found))
        self._last = found
        return tuple(urls)


MAX_BYTES = 4 << 20
NO_YAML = "YAML needs PyYAML (pip install PyYAML); JSON does not"


def urls_of_groups(document: object) -> tuple[str, ...]:
    """Exporters from the contents of a file. Raises ValueError.

    >>> urls_of_groups([{"targets": ["n1:9169"], "labels": {"node_kind": "gpu", "__scheme__": "https"}}])
    ('https://n1:9169/metrics',)
    """
    if not isinstance(document, list):
        raise ValueError("not a list of {targets: [...], labels: {...}}")
    found: list[str] = []
    for number, group in enumerate(document, 1):
        if not isinstance(group, dict) or not isinstance(group.get("targets"), list):
            raise ValueError(f"group {number}: no list of targets")
        labels = group.get("labels") or {}
        if not isinstance(labels, dict):
            raise ValueError(f"group {number}: labels are not a mapping")
        scheme, path = str(labels.get("__scheme__", "http")), str(labels.get("__metrics_path__", "/metrics"))
        for target in group["targets"]:
            if not isinstance(target, str):
                raise ValueError(f"group {number}: the target {target!r} is not a string")
            found.append(url_of(target, scheme, path))
    return tuple(found)


def _parsed(data: bytes, name: str) -> object:
    if name.endswith(".json"):
        return json.loads(data)
    try:
        import yaml  # noqa: PLC0415 -- needed by those who name such a file
    except ImportError:
        raise ValueError(NO_YAML) from None
    try:
        return yaml.safe_load(data)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from error


class FileTargets:
    """Target files that match patterns. A file is read again when it has changed."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._known: dict[str, tuple[tuple[int, int, int], tuple[str, ...]]] = {}
        self.problems: dict[str, str] = {}
        """What is wrong with patterns that match no file, and with files that cannot be read."""

    def __call__(self) -> tuple[str, ...]:
        """URLs of all files. A file that cannot be read keeps the URLs that it had."""
        matching = {pattern: sorted(glob.glob(pattern)) for pattern in self._patterns}
        self.problems = {pattern: f"{pattern}: no such file" for pattern, paths in matching.items() if not paths}
        present = dict.fromkeys(path for paths in matching.values() for path in paths)
        for path in present:
            self._read(path)
        self._known = {path: self._known[path] for path in present if path in self._known}
        return tuple(url for _, urls in self._known.values() for url in urls)

    def _read(self, path: str) -> None:
        kept = "; its previous targets are kept" if path in self._known else ""
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())  # of the open file: the name may get another one
                print_ = (status.st_ino, status.st_size, status.st_mtime_ns)
                if path in self._known and self._known[path][0] == print_:
                    return
                data = file.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                raise ValueError(f"more than {MAX_BYTES} bytes")
            self._known[path] = print_, urls_of_groups(_parsed(data, path))
        except OSError as error:
            self.problems[path] = f"{path}: {error.strerror or error}{kept}"
        except (ValueError, RecursionError) as error:
            self.problems[path] = f"{path}: {' '.join(str(error).split())}{kept}"


LIFETIME_SECONDS = 3.0
"""Limit of one query, over all name servers."""
NO_DNS = "exporter_dns needs dnspython (pip install dnspython)"
ResolveDns = Callable[[str, str], Sequence[str]]
"""Records of a name and a type (``SRV``, ``A``, ``AAAA``) in the form of a zone file; () if there are none.

Raises OSError if the name servers do not answer, or if the name does not exist.
"""


def dns_resolver(server: tuple[str, int] | None = None, lifetime_seconds: float = LIFETIME_SECONDS) -> ResolveDns:
    """A resolver that asks ``server``, or else the name servers of ``/etc/resolv.conf``, within ``lifetime_seconds``.
    Raises OSError without the package dnspython or without that file.
    """
    try:
        from dns import exception  # noqa: PLC0415 -- needed by those who name such exporters
        from dns.resolver import NoAnswer, Resolver  # noqa: PLC0415
    except ImportError:
        raise OSError(NO_DNS) from None
    try:
        resolver = Resolver(configure=server is None)
    except exception.DNSException as error:
        raise OSError(f"name servers: {error}") from error

    if server is not None:
        resolver.nameservers, resolver.port = [server[0]], server[1]

    def resolve(name: str, kind: str) -> Sequence[str]:
        try:
            return [str(record) for record in resolver.resolve(name, kind, lifetime=lifetime_seconds)]
        except NoAnswer:
            return ()
        except exception.DNSException as error:
            raise OSError(f"{name} ({kind}): {error}") from error

    return resolve


def targets_of(name: str, resolve: ResolveDns) -> tuple[str, ...]:
    """``host:port`` of every exporter with this DNS name, sorted. Raises OSError or ValueError.

    >>> targets_of("_x._tcp.a.org", lambda name, kind: ["0 5 9169 oss1.a.org."])
    ('oss1.a.org:9169',)
    >>> targets_of("oss.a.org:9169", lambda name, kind: ["10.0.0.1"] if kind == "A" else ["fd00::1"])
    ('10.0.0.1:9169', '[fd00::1]:9169')
    """
    host, colon, port = name.rpartition(":")
    if not colon:
        found = []
        for record in resolve(name, "SRV"):
            parts = record.split()
            if len(parts) != 4 or not parts[2].isdecimal():
                raise ValueError(f"{name}: not an SRV record: {record[:80]!r}")
            found.append(f"{parts[3].rstrip('.')}:{parts[2]}")
    else:
        found = [f"{address}:{port}" for address in resolve(host, "A")]
        found += [f"[{address}]:{port}" for address in resolve(host, "AAAA")]
    if not found:
        raise ValueError(f"{name}: no such records")
    return tuple(sorted(found))


class DnsTargets:
    """DNS names, resolved again after ``refresh_seconds``."""

    def __init__(self, names: Sequence[str], resolve: ResolveDns, clock: Clock, refresh_seconds: float) -> None:
        self._names = names
        self._resolve = resolve
        self._clock = clock
        self._refresh_seconds = refresh_seconds
        self._known: dict[str, tuple[str, ...]] = {}
        self._refreshed_at: float | None = None
        self.problems: dict[str, str] = {}
        """The errors of names that could not be resolved."""

    def __call__(self) -> tuple[str, ...]:
        """URLs of all names. A name that cannot be resolved keeps the URLs that it had."""
        now = self._clock.now()
        if self._refreshed_at is None or not 0 <= now - self._refreshed_at < self._refresh_seconds:
            self._refreshed_at = now  # before: names that fail wait for the next time, too
            self.problems = {}
            for name in self._names:
                self._ask(name)
        return tuple(url for name in self._names for url in self._known.get(name, ()))

    def _ask(self, name: str) -> None:
        try:
            self._known[name] = tuple(url_of(target) for target in targets_of(name, self._resolve))
        except (OSError, ValueError) as error:
            kept = "; its previous addresses are kept" if name in self._known else ""
            self.problems[name] = f"{error}{kept}"
