"""What jobs have in common: a name, a place, when and on which nodes; on one file, or in one directory."""

from __future__ import annotations

from dataclasses import dataclass

from lustre.layout.model import Component, Layout

HDD = Layout((Component(pool="hdd"),), composite=False)
HDD_STRIPED = Layout((Component(pool="hdd", stripe_count=4, stripe_size=1 << 20),), composite=False)


@dataclass(frozen=True, slots=True)
class OnFile:
    """A job on one file, in a directory with a default layout."""

    job_id: str = "job.1000"
    path: str = "/proj/file"
    start_seconds: float = 0.0
    stop_seconds: float = float("inf")
    client: int = 0
    """The first of its nodes."""
    nodes: int = 1
    layout: Layout | None = HDD_STRIPED
    striped_directories: bool = False

    def directories(self) -> tuple[tuple[str, Layout | None], ...]:
        """Directories it needs, with their default layouts."""
        return ((self.path.rpartition("/")[0], self.layout),)


@dataclass(frozen=True, slots=True)
class InDirectory:
    """A job on many files of one directory."""

    job_id: str = "job.1000"
    directory: str = "/proj"
    start_seconds: float = 0.0
    stop_seconds: float = float("inf")
    client: int = 0
    """The first of its nodes."""
    nodes: int = 1
    layout: Layout | None = None
    striped_directories: bool = False

    def directories(self) -> tuple[tuple[str, Layout | None], ...]:
        """Directories it needs, with their default layouts."""
        return ((self.directory, self.layout),)

    def files(self) -> tuple[tuple[str, int], ...]:
        """Files that exist before it starts, with their sizes: none."""
        return ()
