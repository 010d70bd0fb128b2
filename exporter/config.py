"""What can be set, and how arguments become settings; every mistake is reported at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lustre.parameters import Roots

_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:]*)):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. An empty host is every address of this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Settings:
    """How the collectors work."""

    enabled: frozenset[str]
    """Names of the collectors that run."""
    osc_per_target: bool = False
    jobs_limit: int = 0
    """Jobs with series of their own, per target; 0 is all."""
    jobs_idle_seconds: int = 3600
    """A job idle for longer has no series; 0 is never."""
    deadline_seconds: float = 8.0
    """A scrape takes no longer; collectors that are not done by then are left out of it."""
    quota_limit: int = 1000
    """Users, groups or projects with series of their own, per parameter; 0 is all."""
    osp_per_target: bool = False


class MistakesError(ValueError):
    """What is wrong with the settings, one sentence each."""

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
        raise ValueError(f"{text!r} is no address to listen on: write host:port, :port or [::1]:port")
    return Address(match["v6"] or match["host"] or "", int(match["port"]))


def check_roots(procfs: str, sysfs: str, debugfs: str | None) -> Roots:
    """The three roots. Those that were asked for must be there; debugfs at its usual place may be missing."""
    asked = [("--path.procfs", procfs), ("--path.sysfs", sysfs)]
    if debugfs is not None:
        asked.append(("--path.debugfs", debugfs))
    wrong = [f"{flag}: {path} is not a directory" for flag, path in asked if not Path(path).is_dir()]
    if wrong:
        raise MistakesError(wrong)
    return Roots.of(procfs, sysfs, debugfs)
