"""Applications: each a frozen description of what a job does, run by threads on one client."""

from __future__ import annotations

from typing import TypeAlias

from simulator.jobs.job import Run
from simulator.jobs.random_io import RandomWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.jobs.streaming import StreamingReader, StreamingWriter

Job: TypeAlias = StreamingWriter | StreamingReader | SmallFileWriter | RandomWriter

__all__ = ["Job", "RandomWriter", "Run", "SmallFileWriter", "StreamingReader", "StreamingWriter"]
