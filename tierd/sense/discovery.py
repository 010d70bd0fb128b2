"""Addresses of exporters: a fixed list, and files as in Prometheus' ``file_sd_configs``.

Files are JSON or YAML; the last part of their path may be a pattern. Labels other than ``__scheme__`` and
``__metrics_path__`` are ignored. A file that cannot be read keeps its former targets and is reported: a half-written
file must not make a server vanish.
"""

from __future__ import annotations

import glob
import json
import logging
import os
from collections.abc import Sequence
from urllib.parse import urlsplit

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
    """Exporters from a fixed list and from files."""

    def __init__(self, fixed: Sequence[str], files: FileTargets) -> None:
        self._fixed = fixed
        self._files = files
        self._logged = ""
        self._last: frozenset[str] | None = None

    def __call__(self) -> tuple[str, ...]:
        """The present URLs, each once. Logs changes, and problems of the files."""
        urls = dict.fromkeys((*self._fixed, *self._files()))
        problem = "; ".join(self._files.problems.values())
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
