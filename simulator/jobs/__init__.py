"""Applications: each a frozen description of what a job does, run by threads on one client or on several."""

from __future__ import annotations

from typing import TypeAlias

from simulator.jobs.distribution import Distribution
from simulator.jobs.job import Run
from simulator.jobs.metadata import LsScan, Mdtest
from simulator.jobs.random_io import RandomWriter
from simulator.jobs.shared_file import SharedFile
from simulator.jobs.small_files import SmallFileWriter
from simulator.jobs.streaming import StreamingReader, StreamingWriter

Job: TypeAlias = StreamingWriter | StreamingReader | SmallFileWriter | RandomWriter | Mdtest | LsScan | SharedFile

__all__ = [
    "Distribution", "Job", "LsScan", "Mdtest", "RandomWriter", "Run", "SharedFile", "SmallFileWriter",
    "StreamingReader", "StreamingWriter",
]  # fmt: skip
