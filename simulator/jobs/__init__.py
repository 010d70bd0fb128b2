"""Applications: each a frozen description of what a job does, run by threads on one client or on several."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from simulator.jobs.io500 import Io500
from simulator.jobs.large_files import RandomWriter, SharedFile, StreamingReader, StreamingWriter
from simulator.jobs.metadata import LsScan, Mdtest, StepFiles
from simulator.jobs.small_files import SmallFileWriter

Job: TypeAlias = Annotated[StreamingWriter | StreamingReader | SmallFileWriter | RandomWriter | Mdtest | LsScan
                           | StepFiles | SharedFile | Io500, Field(discriminator="kind")]
