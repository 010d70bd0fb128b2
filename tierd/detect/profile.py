"""A job's profile from a few windows: a stream, a reader or writer of whole small files, or small random I/O.

The size of RPCs is not enough to classify a job: the aggressor in the paper (Cray, CUG 2018) writes files of 1-4 MB
with full-size RPCs. Files closed per second and bytes per file count as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tierd.detect.groups import covering, grouped
from tierd.loads import Loads, together
from tierd.model import JobLoad, Table, Window
from tierd.validators import Bytes

SMALL_SHARE = 0.5
"""Share of small RPCs from which a job counts as small I/O."""
STEADY_SHARE = 0.5
"""Share of windows with finished files from which a job counts as a job of small files."""
MIN_FILES = 4
"""Finished files from which a job counts as a job of small files. In its first window a job may close a file that it
has only prepared. A choice: a job of 0.2 files/s reaches it in 20 s."""


@dataclass(frozen=True)
class Classes(Table):
    """Limits that separate streams, small files and small I/O."""

    stream_rpc_bytes: Bytes = 256 << 10
    """Minimum mean RPC of a stream. Full RPCs have 1-16 MiB; a stream over short stripes sends smaller RPCs."""
    small_rpc_bytes: Bytes = 64 << 10
    """Largest RPC that counts as small: it costs a seek and moves few bytes."""
    small_file_bytes: Bytes = 8 << 20
    """Largest mean of bytes per closed file for a job of small files: twice the largest file in the paper."""


@dataclass(frozen=True)
class Profile:
    """The load of a job over the windows in which it was active."""

    job: str
    seconds: float
    """Total length of the windows in which the job was active, for rates."""
    by_target: Mapping[str, JobLoad]
    total: JobLoad
    """Its loads on all targets together."""
    closes: float
    creates: float
    closing_share: float
    """Share of these windows in which the job closed files. It is low for a job that keeps large files open."""
    opens: float = 0.0

    @property
    def mean_rpc_bytes(self) -> float:
        return self.total.moved_bytes / self.total.bulk_operations if self.total.bulk_operations else 0.0

    @property
    def read_share(self) -> float:
        """Part of its bulk RPCs that read."""
        return self.total.reads / self.total.bulk_operations if self.total.bulk_operations else 0.0

    @property
    def largest_rpc_bytes(self) -> int:
        return max(self.total.sizes, default=0)

    @property
    def typical_rpc_bytes(self) -> int:
        """Upper bound of the median RPC, weighed by bytes, from the kernel's size histogram, or else the mean; 0 if
        there are none.

        >>> Profile("j", 5.0, {}, JobLoad("", "j", 0, 9e6, 0, 12, sizes={4096: 6.0, 1 << 20: 6.0}), 0, 0,
        ...         0).typical_rpc_bytes
        1048576
        """
        half = covering(((upper, upper * count) for upper, count in sorted(self.total.sizes.items())), 0.5)
        return half[-1] if half else round(self.mean_rpc_bytes)

    @cached_property
    def files(self) -> float:
        """Number of finished files; 0 if most closes are missing, because they were counted for a kernel thread."""
        return max(self.closes, self.creates) if self.closes >= 0.3 * self.creates else 0.0

    @property
    def bytes_per_file(self) -> float:
        """Mean bytes moved per finished file; infinite for a job that finishes none."""
        return self.total.moved_bytes / self.files if self.files else float("inf")

    def small_rpc_share(self, small_bytes: int) -> float:
        """Share of RPCs of at most ``small_bytes``, from the kernel's size histogram, or else from the mean size."""
        if total := sum(self.total.sizes.values()):
            return sum(count for upper, count in self.total.sizes.items() if upper <= small_bytes) / total
        return 1.0 if 0 < self.mean_rpc_bytes <= small_bytes else 0.0

    def is_small_files(self, classes: Classes) -> bool:
        """Whether the job steadily works on whole small files, with RPCs of any size."""
        return (self.closing_share >= STEADY_SHARE and self.total.moved_bytes > 0 and self.files >= MIN_FILES
                and self.bytes_per_file <= classes.small_file_bytes)

    def is_small_io(self, classes: Classes) -> bool:
        return self.small_rpc_share(classes.small_rpc_bytes) >= SMALL_SHARE

    def is_stream(self, classes: Classes) -> bool:
        """Whether the job moves large files in large RPCs."""
        return self.mean_rpc_bytes >= classes.stream_rpc_bytes and not self.is_small_files(classes)

    def is_in_between(self, classes: Classes) -> bool:
        """Whether the RPCs are too large for small I/O and too small for a stream, such as 128 KiB.

        They may cost seeks like small I/O, or be a stream over short stripes. The counters do not show which.
        """
        return (0 < self.mean_rpc_bytes < classes.stream_rpc_bytes
                and not self.is_small_files(classes) and not self.is_small_io(classes))


def profiles(windows: Sequence[Window], jobs: Collection[str] | None = None) -> dict[str, Profile]:
    each = [Loads.of(window.loads) for window in windows]
    if jobs is not None:
        each = [some.rows(some.jobs_among(jobs)) for some in each]
    active = grouped((job, window) for window, some in zip(windows, each, strict=True)
                     for job in set(some.job.tolist()))
    loads, by_target, found = together(each), defaultdict[str, dict[str, JobLoad]](dict), {}
    for load in loads.values_by_row():
        by_target[load.job][load.target] = load
    for total in loads.by_job().values_by_row():
        job, here = total.job, active[total.job]
        namespace = [w.namespace[job] for w in here if job in w.namespace]
        found[job] = Profile(
            job, sum([w.end - w.start for w in here]), by_target[job], total,
            closes=sum([n.closes for n in namespace]), creates=sum([n.creates for n in namespace]),
            closing_share=sum([n.closes > 0 for n in namespace]) / len(here), opens=sum([n.opens for n in namespace]))
    return found
