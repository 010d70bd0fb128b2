r"""Lists of exporters in files, as Prometheus' ``file_sd_configs`` has them: JSON or YAML, patterns in the last part.

>>> targets_of([{"targets": ["oss1:9169"], "labels": {"__scheme__": "https", "rack": "4"}}])
('https://oss1:9169/metrics',)

Labels other than ``__scheme__`` and ``__metrics_path__`` are for Prometheus alone. A file that is bad keeps the targets
it had, and says so: a half-written file must not make a server vanish.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Sequence
from typing import Any

from tierd.sense.discovered import url_of

MOST_BYTES = 4 << 20
NO_YAML = "YAML needs the package PyYAML (pip install 'lustre-tierd[web]'); JSON does not"
Fingerprint = tuple[int, int, int]


def targets_of(document: Any) -> tuple[str, ...]:
    """URLs from the contents of a file. Raises ValueError."""
    if not isinstance(document, list):
        raise ValueError("not a list of {targets: [...], labels: {...}}")
    urls: list[str] = []
    for number, group in enumerate(document, 1):
        if not isinstance(group, dict) or not isinstance(group.get("targets"), list):
            raise ValueError(f"group {number}: no list of targets")
        labels = group.get("labels") or {}
        if not isinstance(labels, dict):
            raise ValueError(f"group {number}: labels are no mapping")
        scheme, path = str(labels.get("__scheme__", "http")), str(labels.get("__metrics_path__", "/metrics"))
        for target in group["targets"]:
            if not isinstance(target, str):
                raise ValueError(f"group {number}: the target {target!r} is no text")
            urls.append(url_of(target, scheme, path))
    return tuple(urls)


def parse(data: bytes, name: str) -> tuple[str, ...]:
    """URLs from the bytes of a file. Raises ValueError with the name and what is wrong."""
    try:
        return targets_of(json.loads(data) if name.endswith(".json") else _yaml(data))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: {' '.join(str(error).split())}") from error


def _yaml(data: bytes) -> Any:
    try:
        import yaml  # noqa: PLC0415 -- needed by those who name such a file
    except ImportError:
        raise ValueError(NO_YAML) from None
    try:
        return yaml.safe_load(data)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from error


class FileTargets:
    """Files that match patterns, looked at again when they changed."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._known: dict[str, tuple[Fingerprint, tuple[str, ...]]] = {}
        self._troubles: dict[str, str] = {}

    @property
    def folders(self) -> tuple[str, ...]:
        """Where the files are, for whoever watches for changes."""
        return tuple(dict.fromkeys(os.path.dirname(os.path.abspath(pattern)) for pattern in self._patterns))

    @property
    def trouble(self) -> str:
        """What is wrong with files, in words."""
        return "; ".join(self._troubles.values())

    def __call__(self) -> tuple[str, ...]:
        """URLs of all files as they are now; of a bad one, as it was when it was good."""
        present: dict[str, None] = {}
        self._troubles = {pattern: f"{pattern}: no such file" for pattern in self._patterns if not glob.glob(pattern)}
        for pattern in self._patterns:
            present.update(dict.fromkeys(sorted(glob.glob(pattern))))
        for path in present:
            self._look(path)
        for path in [path for path in self._known if path not in present]:
            del self._known[path]
        return tuple(url for path in present if path in self._known for url in self._known[path][1])

    def _look(self, path: str) -> None:
        kept = "; the targets it named before are kept" if path in self._known else ""
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                print_ = (status.st_ino, status.st_size, status.st_mtime_ns)
                if path in self._known and self._known[path][0] == print_:
                    return
                data = file.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise ValueError(f"{path}: more than {MOST_BYTES} bytes")
            self._known[path] = (print_, parse(data, path))
        except OSError as error:
            self._troubles[path] = f"{path}: {error.strerror or error}{kept}"
        except ValueError as error:
            self._troubles[path] = f"{error}{kept}"
