"""Settings of the exporter, and checks of arguments that report all mistakes at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lustre.parameters import Roots

_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:]*)):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on. An empty host means all addresses of this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the collectors."""

    enabled: frozenset[str]
    """Names of the enabled collectors."""
    osc_per_target: bool = False
    jobs_limit: int = 0
    """Number of jobs with their own series per target. 0 means all."""
    jobs_idle_seconds: int = 3600
    """Jobs idle for longer have no series. 0 disables this."""
    deadline_seconds: float = 8.0
    """Time limit of a scrape. Slower collectors are missing from it."""
    quota_limit: int = 1000
    """Number of users, groups or projects with their own series per parameter. 0 means all."""
    osp_per_target: bool = False


class MistakesError(ValueError):
    """Mistakes in the settings, one sentence each."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


def parse_address(text: str) -> Address:
    """Read ``host:port``, ``:port``, ``[::1]:port``.

    >>> parse_address(":9169"), parse_address("[::1]:80")
    (Address(host='', port=9169), Address(host='::1', port=80))
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text!r} is not a listen address; use host:port, :port or [::1]:port")
    return Address(match["v6"] or match["host"] or "", int(match["port"]))


def check_roots(procfs: str, sysfs: str, debugfs: str | None) -> Roots:
    """The three root directories. Given ones must exist; the default debugfs may be missing."""
    asked = [("--path.procfs", procfs), ("--path.sysfs", sysfs)]
    if debugfs is not None:
        asked.append(("--path.debugfs", debugfs))
    wrong = [f"{flag}: {path} is not a directory" for flag, path in asked if not Path(path).is_dir()]
    if wrong:
        raise MistakesError(wrong)
    return Roots.of(procfs, sysfs, debugfs)
