"""What an integration is: its settings, and the source that it becomes while tierd runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import Metric

from lustre.filesystem import Filesystem
from tierd.clock import Clock
from tierd.model import DirectoryActivity
from tierd.sense.freshness import SourceAge
from tierd.sense.readings import Reading

MAX_NAME = 80
"""Characters of a name; users choose names of jobs."""


def plain(name: str) -> str:
    r"""A name for metrics and the journal, which take UTF-8 only; cut to ``MAX_NAME``.

    >>> plain(b"run\xff".decode(errors="surrogateescape")), len(plain(1000 * "x"))
    ('run?', 80)
    """
    return name[:MAX_NAME].encode("utf-8", "replace").decode()


MAX_COUNT = 1 << 60


def count_of(value: object) -> int | None:
    """A number that is not negative, also if it is in quotes; None for anything else, and for what no system has.

    >>> [count_of(value) for value in (7, "7", -1, 1.5, True, None, float("nan"), 10**400, "9" * 19)]
    [7, 7, None, 1, None, None, None, None, None]
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MAX_COUNT:
        return None
    return int(value)


@dataclass(frozen=True, slots=True)
class SchedulerJob:
    """A job as its scheduler describes it."""

    id: int
    name: str
    user: str
    uid: int | None
    """None where the source gives the user's name only."""
    account: str
    partition: str
    directory: str
    """Working directory."""
    task: str = ""
    """Array and task, as ``1234_7``; empty for other jobs."""
    nodes: int | None = None
    """Number of nodes; None if the source does not give it."""

    @property
    def words(self) -> str:
        """The job for a person, next to its id."""
        what = [self.name, f"account {self.account}" if self.account else "",
                f"partition {self.partition}" if self.partition else ""]
        return f"{self.user}: {', '.join(filter(None, what))}"


class Source:
    """A configured integration while tierd runs. What it does not override has no effect."""

    @property
    def age(self) -> SourceAge | None:
        """The time of its last data and its present problem; None if status and metrics do not show it as a source."""
        return None

    def refresh(self) -> None:
        """Read what is new, once in each cycle. Problems are shown in :attr:`age`, not raised."""

    def noted(self, reading: Reading) -> Reading:
        """Counters, with what the integration knows about their targets."""
        return reading

    def enriched(self, activities: list[DirectoryActivity], _: Filesystem) -> list[DirectoryActivity]:
        """Activities, with what the integration knows about their files. Nothing is added if it does not answer."""
        return activities

    def jobs(self, _: Iterable[str]) -> Mapping[str, SchedulerJob]:
        """What is known about jobs, by their job ids of Lustre. Never waits."""
        return {}

    def metrics(self) -> Iterator[Metric]:
        """Its families, read without waiting."""
        return iter(())

    def close(self) -> None:
        """Release what is open."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """What a source may need of the daemon."""

    fsname: str
    clock: Clock
    environment: Mapping[str, str]
    stale_seconds: float
    """Maximum age of data, where the integration has no setting of its own."""
    flash_pools: Collection[str] = ()


@dataclass(frozen=True, kw_only=True)
class Integration:
    """One integration. Its name in the registry is that of its settings in ``[sense]``."""

    settings: Any
    """Type of its settings, with limits and validators as annotations. With its defaults nothing is read."""
    configured: Callable[[Any], bool]
    """Whether settings name something to read."""
    start: Callable[[Any, Site], Source]
    """The source of settings that are configured."""
